"""Ties inside sources, against every settlement of them written out as runs of its own."""

from collections.abc import Mapping, Sequence
from itertools import groupby, permutations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fusion_bench.checks.source_ties import (
    SETTLEMENTS,
    Settlement,
    SourceTies,
    TiedRuns,
    find_affordable,
    find_source_ties,
    find_tied_runs,
)
from fusion_bench.data.alignment import align
from fusion_bench.data.ordering import FloatArray
from fusion_bench.data.qrels import Qrels
from fusion_bench.data.read_options import ReadOptions
from fusion_bench.data.records import ScoreSpace
from fusion_bench.data.run import Run
from fusion_bench.experiment.system import System
from fusion_bench.measures import Measure, parse_measure
from fusion_bench.methods.normalize import ScoreLists
from fusion_bench.methods.normalize.linear import MinMax
from fusion_bench.ranking.system_scores import evaluate_systems
from tests.examples import examples

Lists = Mapping[str, Mapping[str, float]]

QRELS = Qrels.from_dict({"q1": {"d1": 2, "d2": 1, "d3": 0}, "q2": {"d1": 1}})
MEASURES = [parse_measure(name) for name in ("nDCG@3", "RR@10", "R@2")]
CONSTANT = {q: dict.fromkeys(("d1", "d2", "d3", "d4"), 1.0) for q in ("q1", "q2")}
OTHER = {q: {"d4": 4.0, "d3": 3.0, "d2": 2.0, "d1": 1.0} for q in ("q1", "q2")}


def source_ties(
    system: System,
    lists: Mapping[str, Lists],
    *,
    rerankers: Mapping[str, Lists] | None = None,
    space: ScoreSpace = "order",
    ranked_by_column: Sequence[str] = (),
    measures: Sequence[Measure] = MEASURES,
    seed: int = 0,
    qrels: Qrels = QRELS,
) -> SourceTies:
    reranked = [Run.from_dict(name, ranked) for name, ranked in (rerankers or {}).items()]
    spaces: dict[str, ScoreSpace] = {run.name: space for run in reranked}
    sources = [Run.from_dict(name, ranked) for name, ranked in lists.items()]
    runs = align(qrels, sources, rerankers=reranked, spaces=spaces)
    scores = evaluate_systems([system], runs, measures)
    return find_source_ties(
        {"s": system},
        {"s": scores[0].values},
        runs,
        measures,
        ranked_by_column=ranked_by_column,
        seed=seed,
    )["s"]


def orders(scores: Mapping[str, float]) -> list[list[str]]:
    ranked = sorted(scores, key=lambda document: -scores[document])
    groups = [[*group] for _, group in groupby(ranked, key=scores.__getitem__)]
    choices = product(*(permutations(group) for group in groups))
    return [[document for group in choice for document in group] for choice in choices]


def brute_force(
    system: System, lists: Mapping[str, Lists], query: str, qrels: Qrels = QRELS
) -> np.ndarray:
    """(settlements, M): the values of one query under every settlement of its lists."""
    values = []
    for choice in product(*(orders(ranked[query]) for ranked in lists.values())):
        runs = align(
            qrels,
            [
                Run.from_dict(name, {query: {d: -float(n) for n, d in enumerate(order)}})
                for name, order in zip(lists, choice, strict=True)
            ],
        )
        row = runs.queries.index(query)
        values.append(evaluate_systems([system], runs, MEASURES)[0].values[:, row])
    return np.array(values)


def tied_lists(*documents: str) -> st.SearchStrategy[Lists]:
    scores = st.dictionaries(st.sampled_from(documents), st.sampled_from([1.0, 2.0]), min_size=1)
    return st.fixed_dictionaries({"q1": scores, "q2": scores})


@settings(max_examples=examples(15))
@given(
    tied_lists("d1", "d2", "d3", "d4"), st.sampled_from([None, 1, 2, 3]), st.sampled_from([None, 2])
)
def test_one_source_has_the_range_of_all_orders(
    ranked: Lists, depth: int | None, top_k: int | None
) -> None:
    system = System("s", ["a"], depth=depth, top_k=top_k)
    found = source_ties(system, {"a": ranked})
    assert found.settlements is None
    for q, query in enumerate(("q1", "q2")):
        values = brute_force(system, {"a": ranked}, query)
        assert found.ties.minimum[:, q] == pytest.approx(values.min(axis=0))
        assert found.ties.maximum[:, q] == pytest.approx(values.max(axis=0))
        assert found.ties.expected[:, q] == pytest.approx(values.mean(axis=0))


@settings(max_examples=examples(8))
@given(tied_lists("d1", "d2", "d3"), tied_lists("d1", "d2", "d4"))
def test_a_fusion_has_the_range_of_random_orders(first: Lists, second: Lists) -> None:
    system, lists = System("s", ["a", "b"]), {"a": first, "b": second}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("fusion_bench.checks.source_ties.SETTLEMENTS", 200)
        found = source_ties(system, lists)
    low, high = found.ties.minimum, found.ties.maximum
    for q, query in enumerate(("q1", "q2")):
        values = brute_force(system, lists, query)
        assert (low[:, q] >= values.min(axis=0) - 1e-12).all()
        assert (high[:, q] <= values.max(axis=0) + 1e-12).all()
        # Where the first orders find a difference, 200 more find each of four orders.
        if len(values) <= 4 and (high[:, q] > low[:, q]).any():
            assert high[:, q] == pytest.approx(values.max(axis=0))
            assert low[:, q] == pytest.approx(values.min(axis=0))
            assert found.ties.expected[:, q] == pytest.approx(values.mean(axis=0), abs=0.2)


def test_the_reversed_order_widens_the_range_and_is_no_random_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def draw_the_given_order(tied: TiedRuns, seed: int, number: int) -> Settlement:  # noqa: ARG001
        return tuple(np.arange(len(each.rows), dtype=np.float64) for each in tied.lists)

    monkeypatch.setattr(TiedRuns, "draw", draw_the_given_order)
    ties = source_ties(System("s", ["a", "b"]), {"a": CONSTANT, "b": OTHER}).ties
    given = np.where(ties.expected == ties.minimum, ties.minimum, ties.maximum)
    np.testing.assert_allclose(ties.expected, given)
    assert (ties.affected > 0).any()


def test_constant_and_nearly_equal_scores_are_tied() -> None:
    found = source_ties(System("s", ["a"]), {"a": CONSTANT})
    assert found.settlements is None
    assert found.ties.affected.tolist() == [2, 2, 2]
    assert found.ties.maximum[1].tolist() == [1, 1]
    assert found.ties.minimum[1].tolist() == pytest.approx([1 / 3, 1 / 4])
    near = {"q1": {"d1": 0.3, "d2": 0.1 + 0.2}}
    assert source_ties(System("s", ["a"]), {"a": near}).ties.affected[0] == 1


@pytest.mark.parametrize(
    ("system", "sampled"),
    [
        (System("s", ["a"], fusion={"method": "weighted_score"}), False),
        (System("s", ["a", "b"], fusion={"method": "weighted_score"}), False),
        (System("s", ["a", "b"], fusion={"method": "rrf", "weights": {"b": 0}}), False),
        (System("s", ["a", "b"]), True),
        (System("s", ["b", "c"], stages={"c": {"runs": ["a"]}}), True),
        (System("s", ["c"], stages={"c": {"runs": ["a"]}}), True),
        (System("s", ["a"], min_relevance=0.016), True),
    ],
    ids=str,
)
def test_which_ranges_are_exact(system: System, sampled: bool) -> None:
    found = source_ties(system, {"a": CONSTANT, "b": OTHER})
    assert (found.settlements == SETTLEMENTS) is sampled


CHUNKS = {
    "q1": {"d1#1": 2.0, "d3#1": 2.0, "d2#1": 1.0, "d2#2": 1.0, "d4#1": 1.0},
    "q2": {"d4#1": 2.0, "d1#1": 1.0, "d1#2": 1.0, "d3#1": 1.0},
}


@pytest.mark.parametrize("runs", [["a"], ["a", "b"]], ids=str)
@pytest.mark.parametrize(
    "rule",
    [
        {"score": "rrf", "k": 1, "place": "each list"},
        {"keep": 1, "place": "each list"},
        {"score": "max"},
        {"score": "sum", "place": "reranked"},
    ],
    ids=str,
)
def test_ties_between_chunks_reach_the_documents(runs: list[str], rule: dict[str, object]) -> None:
    qrels = Qrels.from_dict({"q1": {"d1": 2, "d2": 1, "d3": 0}, "q2": {"d1": 1}})
    if "keep" in rule:
        qrels = Qrels.from_dict({"q1": {"d1#1": 2, "d2#2": 1}, "q2": {"d1#1": 1}})
    system = System("s", runs, collapse={"by": {"split": "#"}, **rule})
    lists = {"a": CHUNKS, "b": {"q1": {"d4#2": 2.0, "d2#1": 1.0}, "q2": {"d3#2": 1.0}}}
    lists = {name: lists[name] for name in runs}
    found = source_ties(system, lists, qrels=qrels)
    assert found.settlements == SETTLEMENTS
    assert found.ties.affected.any()
    for q, query in enumerate(("q1", "q2")):
        values = brute_force(system, lists, query, qrels)
        low, high = values.min(axis=0), values.max(axis=0)
        assert found.ties.minimum[:, q] == pytest.approx(low)
        assert found.ties.maximum[:, q] == pytest.approx(high)


def test_a_tie_of_two_chunks_decides_the_rerank_score_of_their_document() -> None:
    rerank = {"q1": {"d1#1": 0.9, "d1#2": 0.1, "d2#1": 0.5}, "q2": {"d1#1": 0.2}}
    lists = {"a": {"q1": {"d1#1": 2.0, "d1#2": 2.0, "d2#1": 1.0}, "q2": {"d1#1": 1.0}}}
    system = System(
        "s",
        ["a"],
        fusion="weighted_score",
        blend={"method": "replace", "reranker": "r"},
        collapse={"by": {"split": "#"}, "score": "max", "place": "each list"},
    )
    found = source_ties(system, lists, rerankers={"r": rerank}, space="unit")
    assert (found.ties.minimum[0, 0], found.ties.maximum[0, 0]) == pytest.approx((0.8597, 1), 1e-3)


def test_a_fusion_of_scores_alone_does_not_depend_on_ties_inside_its_sources() -> None:
    system = System("s", ["a", "b"], fusion={"method": "weighted_score"})
    assert source_ties(system, {"a": CONSTANT, "b": OTHER}).ties.affected.tolist() == [0, 0, 0]


def test_a_normalizer_made_of_one_that_reads_scores_alone_may_read_ranks() -> None:
    class ByRank(MinMax):
        method: str = "by_rank"

        def scale_lists(self, lists: ScoreLists) -> FloatArray:
            return 1 / lists.ranks

    fusion = {"method": "weighted_score", "normalize": ByRank()}
    found = source_ties(System("s", ["a", "b"], fusion), {"a": CONSTANT, "b": OTHER})
    assert found.ties.affected.max() > 0


@pytest.mark.parametrize(("space", "affected"), [("order", 2), ("unbounded", 0)])
def test_ties_of_a_rerank_list_count_where_only_its_order_is_read(
    space: ScoreSpace, affected: int
) -> None:
    blend = {"method": "linear", "reranker": "r", "beta": 0.9, "retrieval": "fused"}
    system = System("s", ["b"], blend=blend)
    found = source_ties(system, {"b": OTHER}, rerankers={"r": CONSTANT}, space=space)
    assert found.ties.affected[1] == affected


def test_the_order_of_sources_and_a_run_again_change_nothing() -> None:
    lists = {"a": CONSTANT, "b": CONSTANT}
    first = source_ties(System("s", ["a", "b"]), lists)
    other = source_ties(System("s", ["b", "a"]), dict(reversed(lists.items())))
    for name in ("minimum", "maximum", "expected"):
        np.testing.assert_array_equal(getattr(first.ties, name), getattr(other.ties, name))
    seeded = source_ties(System("s", ["a", "b"]), lists, seed=1)
    assert (seeded.ties.expected != first.ties.expected).any()


def test_measures_of_ir_measures_are_known_of_single_sources_only() -> None:
    measures = [parse_measure("nDCG@3"), parse_measure("Bpref")]
    fused = source_ties(System("s", ["a", "b"]), {"a": CONSTANT, "b": OTHER}, measures=measures)
    assert (fused.unknown, fused.ties.affected[1]) == (frozenset({"Bpref"}), 0)
    alone = source_ties(System("s", ["a"]), {"a": CONSTANT}, measures=measures)
    assert (alone.unknown, alone.ties.affected[1]) == (frozenset(), 1)


def test_what_is_not_sampled_is_unknown_and_what_is_exact_is_known() -> None:
    runs = align(QRELS, [Run.from_dict("a", CONSTANT), Run.from_dict("b", OTHER)])
    systems = {"alone": System("alone", ["a"]), "fused": System("fused", ["a", "b"])}
    scores = evaluate_systems(list(systems.values()), runs, MEASURES)
    values = {name: each.values for name, each in zip(systems, scores, strict=True)}
    found = find_source_ties(systems, values, runs, MEASURES, samples=False)
    assert found["fused"].unknown == {measure.name for measure in MEASURES}
    assert found["fused"].settlements is None
    assert found["alone"].unknown == frozenset()
    assert found["alone"].ties.affected.any()


def test_gaps_in_a_rank_column_are_no_ties() -> None:
    column = Run.from_rows(
        "a",
        ["q1"] * 3,
        ["d1", "d2", "d3"],
        [1.0, 1.0, 1.0],
        ranks=[3, 7, 9],
        read_options=ReadOptions(rank_from="column"),
    )
    runs, system = align(QRELS, [column]), System("s", ["a"])
    values = evaluate_systems([system], runs, MEASURES)[0].values
    found = find_source_ties(
        {"s": system},
        {"s": values},
        runs,
        MEASURES,
        ranked_by_column={"a"},
    )
    assert found["s"].ties.affected.tolist() == [0, 0, 0]


@pytest.mark.parametrize(
    ("system", "most", "affordable"),
    [
        (System("s", ["a", "b"]), 0, True),
        (System("s", ["b", "c"], stages={"c": {"runs": ["a"]}}), 0, False),
        (System("s", ["b", "c"], stages={"c": {"runs": ["a"]}}), 8, True),
    ],
    ids=str,
)
def test_many_candidates_need_a_system_that_is_counted(
    system: System, most: int, affordable: bool
) -> None:
    runs = align(QRELS, [Run.from_dict("a", CONSTANT), Run.from_dict("b", OTHER)])
    tied = find_tied_runs(runs, ["a", "b"], [])
    names = find_affordable({"s": system}, tied, MEASURES, most)
    assert (names == {"s"}) is affordable
