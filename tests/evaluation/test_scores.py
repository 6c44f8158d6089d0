from collections.abc import Mapping

import numpy as np
import pytest

from fusion_bench.config.models import parse_model
from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.alignment import align
from fusion_bench.data.ordering import FloatArray
from fusion_bench.data.qrels import Qrels
from fusion_bench.data.records import Query
from fusion_bench.data.run import Run
from fusion_bench.errors import ConfigError
from fusion_bench.experiment.experiment import replace_v2
from fusion_bench.experiment.system import System
from fusion_bench.measures import parse_measure
from fusion_bench.methods.fuse import Fusion
from fusion_bench.ranking.final_lists import rank_queries
from fusion_bench.ranking.system_scores import evaluate_systems

ROLES = {
    "bm25": frozenset({"keyword"}),
    "dense": frozenset({"question", "semantic"}),
    "kg": frozenset({"graph"}),
}
LISTS: Mapping[str, Mapping[str, Mapping[str, float]]] = {
    "bm25": {"q1": {"a": 3.0, "b": 2.0, "c": 1.0}, "q2": {"a": 1.0}},
    "dense": {"q1": {"c": 3.0, "d": 2.0}, "q2": {"b": 1.0, "a": 0.5}},
    "kg": {"q1": {"e": 1.0}, "q2": {"b": 2.0}},
}
NO_LOW = {"method": "theoretical_min_max", "lo": {"x": 0}}
QRELS = Qrels.from_dict({"q1": {"a": 1, "e": 2}, "q2": {"b": 1}, "q3": {"a": 1}})


class Plain(Fusion):
    formula = "0"
    source = "here"
    method: str = "plain"

    def fuse(self, runs: AlignedRuns) -> FloatArray:
        return np.zeros(len(runs.documents))

    def max_possible(self, runs: AlignedRuns) -> FloatArray:
        return np.ones(len(runs.queries))


def runs(queries: Mapping[str, Query] | None = None) -> AlignedRuns:
    made = [Run.from_dict(name, lists, roles=ROLES[name]) for name, lists in LISTS.items()]
    rerank = Run.from_dict("r", {"q1": {"a": 0.1, "b": 0.9}})
    return align(QRELS, made, rerankers=[rerank], queries=queries, spaces={"r": "unit"})


def system(**options: object) -> System:
    return parse_model(System, {"name": "s", "runs": ("bm25", "dense"), **options})


def lists(found: System) -> dict[str, list[str]]:
    out: dict[str, list[str]] = {}
    for _, ranking in rank_queries(found, runs()):
        view = ranking.runs
        for q, query in enumerate(view.queries):
            mine = [n for n in range(view.offsets[q], view.offsets[q + 1]) if ranking.positions[n]]
            mine.sort(key=lambda n: int(ranking.positions[n]))
            out[query] = [view.vocabulary[view.documents[n]] for n in mine]
    return out


# What a system may say --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"runs": ()}, r"^runs: .*at least 1 item"),
        ({"runs": ("a", "b", "a")}, "'a' is listed twice"),
        ({"depth": 0}, "depth"),
        ({"depth": {"bm25": 0}}, "depth"),
        ({"top_k": 0}, "equal to 1"),
        ({"min_relevance": float("nan")}, "min_relevance: .* finite"),
        ({"fusion": "rff"}, "'rff'; did you mean"),
        ({"blend": {"method": "replace"}}, r"blend\.reranker: is required"),
        ({"fuson": "rrf"}, "fuson: .* mean 'fusion'"),
        ({"weights_by_type": {"local": {"a": 1.0}}}, "for type 'hybrid'"),
        ({"by_query_type": {"local": {}}}, "type 'hybrid' is required"),
        ({"fusion": {"k": {"by_query_type": {"local": 1}}}}, "value for 'hybrid'"),
        (
            {"by_query_type": {"hybrid": {}}, "weights_by_type": "conv-03-05"},
            "^weights_by_type and by_query_type ",
        ),
    ],
)
def test_systems_that_break_a_rule(options: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        system(**options)


# problems ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, []),
        ({"runs": ("bm25", "bm52")}, [(("runs", 1), "'bm52'; did you mean")]),
        ({"depth": {"kg": 3}}, [(("depth", "kg"), "'kg' (known: bm25, dense)")]),
        (
            {"blend": {"method": "replace", "reranker": "x"}},
            [(("blend", "reranker"), "unknown reranker 'x' (known: r)")],
        ),
        (
            {"fusion": {"method": "rrf", "weights": {"graph": 1}}},
            [(("fusion",), "weights: 'graph' fits no source")],
        ),
        (
            {"runs": ("bm25",), "fusion": "rrf_v2"},
            [(("fusion",), "rrf_v2 needs a source of role 'question'")],
        ),
        (
            {"fusion": {"method": "rrf_v2", "weights": {"question": 0}}},
            [(("fusion",), "rrf_v2 needs a source of role 'question' that weighs more than 0")],
        ),
        (
            {
                "weights_by_type": {
                    "hybrid": {"keyword": 0.5, "semantic": 0.5},
                    "local": {"keyword": 0.5, "graph": 0.5},
                }
            },
            [(("weights_by_type", "local"), "weights: 'graph' fits no source")],
        ),
        (
            {"fusion": Plain(), "weights_by_type": {"hybrid": {"keyword": 1.0}}},
            [(("weights_by_type", "hybrid"), "system 's': weights_by_type needs a fusion with")],
        ),
    ],
)
def test_problems_name_the_place(
    options: dict[str, object], expected: list[tuple[tuple[str, ...], str]]
) -> None:
    found = list(system(**options).find_misfits(ROLES, ["r"]))
    assert [location for location, _ in found] == [location for location, _ in expected]
    for (_, error), (_, text) in zip(found, expected, strict=True):
        assert isinstance(error, ConfigError)
        assert text in str(error)


# evaluate ---------------------------------------------------------------------------------------


def test_values_are_per_system_measure_and_query() -> None:
    measures = [parse_measure(name) for name in ("RR@10", "R@1")]
    found = evaluate_systems([system(), system(name="t", runs=("kg",))], runs(), measures)
    assert [scores.system for scores in found] == ["s", "t"]
    assert found[0].queries == ("q1", "q2", "q3")
    np.testing.assert_allclose(found[0].values, [[0.5, 0.5, 0.0], [0.0, 0.0, 0.0]])
    np.testing.assert_allclose(found[1].values, [[1.0, 1.0, 0.0], [0.5, 1.0, 0.0]])
    assert not found[0].values.flags.writeable


def test_values_of_types_land_at_their_queries() -> None:
    known = {"q1": Query("q1", type="a", confidence=0.9), "q2": Query("q2", type="b")}
    table = runs(known)
    by_type = system(
        runs=("bm25", "kg"),
        weights_by_type={
            "hybrid": {"keyword": 1.0, "graph": 0.0},
            "a": {"keyword": 0.0, "graph": 1.0},
            "b": {"keyword": 0.0, "graph": 1.0},
        },
    )
    (found,) = evaluate_systems([by_type], table, [parse_measure("RR@10")])
    assert found.values.tolist() == [[1.0, 1.0, 0.0]]
    (plain,) = evaluate_systems(
        [by_type], runs(), [parse_measure("RR@10")]
    )  # all hybrid: bm25 alone
    assert plain.values.tolist() == [[1.0, 0.0, 0.0]]
    covered = np.concatenate([index for index, _ in rank_queries(by_type, table)])
    assert sorted(covered) == [0, 1, 2]


def test_any_number_by_type_is_one_plain_system_a_type() -> None:
    known = {"q1": Query("q1", type="a", confidence=0.9), "q2": Query("q2", type="b")}
    table = runs(known)
    both = {"keyword": 1.0, "graph": {"by_query_type": {"a": 5.0, "hybrid": 0.0}}}
    mixed = system(runs=("bm25", "kg"), fusion={"method": "rrf", "weights": both})
    assert mixed.query_classes == ("a", "hybrid")
    plain = [
        system(runs=("bm25", "kg"), fusion={"method": "rrf", "weights": both | {"graph": weight}})
        for weight in (5.0, 0.0)
    ]
    assert [mixed.of_class("a"), mixed.of_class("hybrid")] == plain
    found = [
        s.values[0] for s in evaluate_systems([mixed, *plain], table, [parse_measure("RR@10")])
    ]
    assert found[0].tolist() == [found[1][0], found[2][1], found[2][2]]
    assert found[1][1] != found[2][1], "the types differ where it matters"
    assert parse_model(System, {"name": "s", **mixed.resolved_config}) == mixed


def test_what_by_type_needs_is_asked_of_the_dataset() -> None:
    blend = {"by_query_type": {"a": {"method": "replace", "reranker": "x"}, "hybrid": "none"}}
    mixed = system(blend=blend, fusion={"method": "rrf_v2"}, runs=("bm25", "dense"))
    assert mixed.reranker_names == {"x"}
    assert [place for place, _ in mixed.find_misfits(ROLES, ["r"])] == [("blend", "reranker")]
    weights = {"by_query_type": {"a": {"graph": 1}, "hybrid": {}}}
    wrong = system(fusion={"method": "rrf", "weights": weights})
    assert [place for place, _ in wrong.find_misfits(ROLES, ["r"])] == [("by_query_type", "a")]
    v1 = replace_v2(mixed)
    assert [v1.of_class(t).fusion.method for t in ("a", "hybrid")] == ["rrf", "rrf"]
