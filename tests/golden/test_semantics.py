"""The worked numbers of the specification, each test named after the document it comes from."""

import itertools
import math
from collections.abc import Mapping

import numpy as np
import pytest

from fusion_bench.config.query_types import CONV_03_05, type_of
from fusion_bench.data.alignment import align
from fusion_bench.data.ordering import score_keys, sum_terms
from fusion_bench.data.qrels import Qrels
from fusion_bench.data.records import Query, ScoreSpace
from fusion_bench.data.run import Run
from fusion_bench.errors import ConfigError
from fusion_bench.experiment.experiment import replace_v2
from fusion_bench.experiment.system import System
from fusion_bench.ranking.final_lists import rank_queries
from fusion_bench.ranking.system_ranking import rank_candidates

Lists = Mapping[str, Mapping[str, float]]  # source → document → score, all for one query
ROLES = {
    "question": frozenset({"question", "semantic"}),
    "hyde": frozenset({"hyde", "semantic"}),
    "bm25": frozenset({"keyword"}),
    "graph": frozenset({"graph"}),
}


def by_rank(**places: int) -> dict[str, float]:
    """Scores that put each document at its place; fillers take the places between."""
    last = max(places.values())
    fillers = {f"filler{n:03}": -float(n) for n in set(range(1, last + 1)) - {*places.values()}}
    return {name: -float(place) for name, place in places.items()} | fillers


def final(
    lists: Lists,
    fusion: object,
    *,
    blend: object = "none",
    rerank: Mapping[str, float] | None = None,
    **options: float,
) -> dict[str, float]:
    runs = [
        Run.from_dict(name, {"q": scores}, roles=ROLES.get(name, frozenset()))
        for name, scores in lists.items()
    ]
    reranks = [Run.from_dict("r", {"q": rerank})] if rerank else []
    aligned = align(Qrels.from_dict({"q": {"d": 1}}), runs, rerankers=reranks, spaces={"r": "unit"})
    data: dict[str, object] = {
        "name": "s",
        "runs": tuple(lists),
        "fusion": fusion,
        "blend": blend,
        **options,
    }
    system = System.model_validate(data)
    ranking = rank_candidates(system, aligned)
    view = ranking.runs
    placed = [n for n in np.argsort(ranking.positions) if ranking.positions[n] > 0]
    return {view.vocabulary[view.documents[n]]: float(ranking.scores[n]) for n in placed}


# Section 4: RRF v2 ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("lists", "expected"),
    [
        ({"hyde": by_rank(d=1), "question": by_rank(x=1)}, 0.0663934426),
        ({"question": by_rank(d=1)}, 0.0827868852),
        ({"question": by_rank(d=4), "question2": by_rank(d=4)}, 0.0625),
        ({"question": by_rank(d=2), "question2": by_rank(d=2)}, 0.0845161290),
    ],
    ids=["first in one 1×", "first in one 2×", "fourth in two 2×", "second in two 2×"],
)
def test_adr_005_rrf_v2_worked_numbers(lists: Lists, expected: float) -> None:
    weights = {name: 2.0 for name in lists if name.startswith("question")} or {"question": 2.0}
    assert final(lists, {"method": "rrf_v2", "weights": weights})["d"] == pytest.approx(
        expected, abs=5e-11
    )


def test_adr_005_first_in_question_hyde_and_bm25() -> None:
    lists = {name: by_rank(d=1) for name in ("question", "hyde", "bm25")}
    found = final(lists, "rrf_v2")["d"]
    assert found == pytest.approx(0.1155737705, abs=5e-11)
    assert found == math.fsum([2 / 61, 1 / 61, 1 / 61, 0.05])


def test_adr_005_bonus_scopes() -> None:
    lists = {"question": by_rank(d=2), "hyde": by_rank(d=1), "bm25": by_rank(d=7)}
    base = 2 / 62 + 1 / 61 + 1 / 67
    for scope, bonus in (("best_rank", 0.05), ("per_source", 0.07), ("question", 0.02)):
        found = final(lists, {"method": "rrf_v2", "bonus_scope": scope})
        assert found["d"] == pytest.approx(base + bonus, abs=1e-15)
    relative = {"method": "rrf_v2", "bonus": {1: 3.0}, "bonus_unit": "relative"}
    assert final(lists, relative)["d"] == pytest.approx(base + 3 / 61, abs=1e-15)


def v2_range(best: tuple[int, int], weight: float) -> tuple[float, float]:
    """Least and greatest v2 score in two sources, by the best rank's bounds."""
    fusion = {"method": "rrf_v2", "weights": {"question": weight, "hyde": weight}}
    low = final({"question": by_rank(d=best[1]), "hyde": by_rank(x=1)}, fusion)["d"]
    high = final({"question": by_rank(d=best[0]), "hyde": by_rank(d=best[0])}, fusion)["d"]
    return low, high


def test_adr_005_two_sources_of_weight_1_make_three_strict_tiers() -> None:
    first, second, third = v2_range((1, 1), 1), v2_range((2, 3), 1), v2_range((4, 200), 1)
    assert list(first) == pytest.approx([0.0664, 0.0828], abs=5e-5)
    assert list(second) == pytest.approx([0.0359, 0.0523], abs=5e-5)
    assert third[1] == pytest.approx(0.0312, abs=1e-4)
    assert first[0] > second[1] > second[0] > third[1]


def test_adr_005_at_weight_2_the_tiers_overlap_slightly() -> None:
    first, second, third = v2_range((1, 1), 2), v2_range((2, 3), 2), v2_range((4, 200), 2)
    assert second[1] > first[0]
    assert third[1] > second[0]


# Section 4: position_aware ----------------------------------------------------------------------

QMD = {
    "method": "position_aware",
    "reranker": "r",
    "retrieval": "reciprocal_rank",
    "missing": "zero",
}


@pytest.mark.parametrize(
    ("place", "rerank", "expected"),
    [(1, 0, 0.75), (2, 1, 0.625), (3, 1, 0.5), (4, 1, 0.55), (10, 1, 0.46), (11, 1, 0.6363636364)],
)
def test_adr_005_position_aware_worked_numbers(place: int, rerank: float, expected: float) -> None:
    lists = {"question": by_rank(d=place, last=12)}
    found = final(lists, "rrf", blend=QMD, rerank={"d": float(rerank)})
    assert found["d"] == pytest.approx(expected, abs=5e-11)


def test_adr_005_rank_1_cannot_move_and_rank_11_beats_rank_2() -> None:
    lists = {"question": by_rank(**{f"d{n:02}": n for n in range(1, 13)})}
    best = dict.fromkeys((f"d{n:02}" for n in range(2, 13)), 1.0) | {"d01": 0.0}
    found = final(lists, "rrf", blend=QMD, rerank=best)
    assert next(iter(found)) == "d01"
    assert list(found).index("d11") < list(found).index("d02")


def test_adr_005_the_raw_fused_score_protects_nothing() -> None:
    lists = {"question": by_rank(a=1, b=2), "hyde": by_rank(a=1, b=2)}
    blend = {"method": "position_aware", "reranker": "r"}
    assert list(final(lists, "rrf_v2", blend=blend, rerank={"a": 0.5, "b": 0.7})) == ["b", "a"]


def test_nablarch_5_3_linear_beta() -> None:
    lists = {"question": by_rank(a=1, b=2)}
    rerank = {"a": 0.2, "b": 0.9}
    linear = {"method": "linear", "reranker": "r"}
    replace = {"method": "replace", "reranker": "r"}
    assert final(lists, "rrf", blend=linear, rerank=rerank) == final(
        lists, "rrf", blend=replace, rerank=rerank
    )
    found = final(lists, "rrf", blend={**linear, "beta": 0.7}, rerank=rerank)
    assert found["b"] == pytest.approx(0.7 * 0.9 + 0.3 / 62, abs=1e-15)


# Section 2 --------------------------------------------------------------------------------------


def test_cormack_2009_rrf() -> None:
    found = final({"bm25": by_rank(d=3), "graph": by_rank(d=5)}, {"method": "rrf", "k": 60})
    assert found["d"] == math.fsum([1 / 63, 1 / 65])


def test_semche_weights_of_one_half() -> None:
    fusion = {"method": "rrf", "weights": {"bm25": 0.5, "graph": 0.5}}
    found = final({"bm25": by_rank(d=1), "graph": by_rank(d=2)}, fusion)
    assert found["d"] == math.fsum([0.5 / 61, 0.5 / 62])


def test_conv_07_05_a_document_one_list_found_beats_one_found_by_two() -> None:
    lists = {"bm25": {"one": 0.9, "two": 0.9}, "graph": {"two": 0.7}}
    found = final(lists, {"method": "weighted_score", "missing": "skip"})
    assert list(found.items()) == [("one", 0.9), ("two", pytest.approx(0.8))]
    assert list(final(lists, {"method": "weighted_score", "missing": "zero"})) == ["two", "one"]


def test_conv_07_05_zero_beats_retrieved_documents_when_scores_are_negative() -> None:
    lists = {"bm25": {"both": -3.0, "top": -1.0}, "graph": {"both": -2.0}}
    found = final(lists, {"method": "weighted_score", "missing": "zero"})
    assert found == {"top": -0.5, "both": -2.5}
    beaten = final(
        {"bm25": {"a": -1.0}, "graph": {"a": -1.0, "b": -1.5}},
        {"method": "weighted_score", "missing": "zero"},
    )
    assert list(beaten) == ["b", "a"]  # never returned by bm25, and that helps it


def test_conv_07_05_three_lists_with_weights_that_sum_to_1_never_exceeds_a_third() -> None:
    weights = {"question": 0.35, "bm25": 0.35, "graph": 0.30}
    lists = {name: by_rank(d=1, e=2) for name in weights}
    found = final(lists, {"method": "rrf", "weights": weights, "normalize": "three_lists"})
    assert found["d"] == pytest.approx(1 / 3)
    assert max(found.values()) <= 1 / 3 + 1e-15
    relevant = final(
        lists,
        {"method": "rrf", "weights": weights, "normalize": "three_lists"},
        min_relevance=0.3,
    )
    assert set(relevant) == {"d", "e"}
    weak = {"question": by_rank(d=1), "bm25": by_rank(e=1), "graph": by_rank(f=1)}
    fusion = {"method": "rrf", "weights": weights, "normalize": "three_lists"}
    assert final(weak, fusion, min_relevance=0.3) == {}


def test_conv_07_05_three_lists_decides_the_order_before_the_clamp() -> None:
    lists = {name: by_rank(a=1, z=2) for name in ("question", "hyde", "bm25", "graph")}
    found = final(lists, {"method": "rrf", "normalize": "three_lists"})
    assert list(found.items()) == [("a", 1.0), ("z", 1.0)]  # by id alone, z would stand first
    tail = {"method": "replace", "reranker": "r", "depth": 1}
    more = {name: by_rank(a=2, z=3, top=1) for name in lists}
    fusion = {"method": "rrf", "normalize": "three_lists"}
    assert list(final(more, fusion, blend=tail, rerank={"top": 0.1})) == ["top", "a", "z"]


def test_conv_03_05_normalize_max_possible_never_exceeds_1() -> None:
    lists = {name: by_rank(d=1) for name in ("question", "hyde", "bm25")}
    for weight in (0.1, 0.7, 1.0, 2.0, 3.3):
        for scope in ("best_rank", "per_source", "question"):
            fusion = {
                "method": "rrf_v2",
                "weights": {"question": weight, "hyde": 0.3},
                "bonus_scope": scope,
                "normalize": "max_possible",
            }
            assert final(lists, fusion)["d"] == 1.0


# CONV-03-05: weights by query type --------------------------------------------------------------


def test_conv_03_05_weights_by_query_type() -> None:
    assert CONV_03_05 == {
        "local": {"keyword": 0.35, "semantic": 0.35, "graph": 0.30},
        "global": {"keyword": 0.20, "semantic": 0.30, "graph": 0.50},
        "relationship": {"keyword": 0.20, "semantic": 0.20, "graph": 0.60},
        "hybrid": {"keyword": 0.33, "semantic": 0.34, "graph": 0.33},
    }


@pytest.mark.parametrize(
    ("query_type", "confidence", "expected"),
    [
        ("local", 0.7, "local"),
        ("local", 0.6999, "hybrid"),
        ("global", None, "global"),
        (None, None, "hybrid"),
        (None, 0.99, "hybrid"),
        ("never heard of", 0.99, "hybrid"),
    ],
)
def test_conv_03_05_a_classification_below_0_7_or_none_uses_hybrid(
    query_type: str | None, confidence: float | None, expected: str
) -> None:
    assert type_of(query_type, confidence, CONV_03_05) == expected


def test_conv_03_05_each_query_is_fused_with_the_weights_of_its_type() -> None:
    roles = {"bm25": "keyword", "dense": "semantic", "kg": "graph"}
    queries = {
        "sure": Query("sure", type="relationship", confidence=0.9),
        "unsure": Query("unsure", type="relationship", confidence=0.5),
    }
    runs = [
        Run.from_dict(name, {q: {name: 1.0} for q in queries}, roles=frozenset({role}))
        for name, role in roles.items()
    ]
    aligned = align(Qrels.from_dict({q: {"bm25": 1} for q in queries}), runs, queries=queries)
    system = System.model_validate(
        {"name": "s", "runs": tuple(roles), "weights_by_type": "conv-03-05"}
    )
    found = {}
    for index, ranking in rank_queries(system, aligned):
        for q in index:
            view = ranking.runs
            found[aligned.queries[q]] = {
                view.vocabulary[d]: float(x)
                for d, x in zip(view.documents, ranking.scores, strict=True)
            }
    assert found["sure"] == {"bm25": 0.2 / 61, "dense": 0.2 / 61, "kg": 0.6 / 61}
    assert found["unsure"] == {"bm25": 0.33 / 61, "dense": 0.34 / 61, "kg": 0.33 / 61}


def test_br_011_a_strategy_that_is_off_weighs_0_and_brings_no_candidates() -> None:
    lists = {"bm25": {"a": 1.0}, "graph": {"b": 1.0}}
    assert list(final(lists, {"method": "rrf", "weights": {"graph": 0}})) == ["a"]


# RAG_FUSION_V2_ENABLED --------------------------------------------------------------------------


def test_rag_fusion_v2_enabled_false_runs_v1() -> None:
    system = System.model_validate(
        {
            "name": "s",
            "runs": ("question", "hyde"),
            "fusion": {"method": "rrf_v2", "k": 10, "normalize": "three_lists"},
            "blend": {
                "method": "position_aware",
                "reranker": "r",
                "depth": 7,
                "missing": "below",
                "min_score": 0.1,
            },
        }
    )
    v1 = replace_v2(system)
    assert v1.fusion.model_dump() == {
        "method": "rrf",
        "k": 10,
        "normalize": "three_lists",
        "weights": {},
    }
    assert v1.blend.method == "replace"
    assert v1.blend.model_dump(exclude={"method"}) == {
        "reranker": "r",
        "depth": 7,
        "missing": "below",
        "tail": "keep",
        "min_score": 0.1,
        "always_rerank": True,
        "skip_limit": 10,
    }
    assert replace_v2(v1) == v1


def test_adr_005_rrf_v2_without_a_question_is_an_error() -> None:
    with pytest.raises(ConfigError, match="needs a source of role 'question'"):
        final({"hyde": by_rank(d=1)}, "rrf_v2")


# Section 5 --------------------------------------------------------------------------------------


def test_section_5_rank_1_in_one_list_ties_with_rank_62_in_two() -> None:
    lists = {"bm25": by_rank(once=1, twice=62), "graph": by_rank(twice=62)}
    found = final(lists, {"method": "rrf", "k": 60})
    assert score_keys(np.array([found["once"]])) == score_keys(np.array([found["twice"]]))
    order = list(found)
    assert order.index("twice") + 1 == order.index("once")  # greater id first
    renamed = {"bm25": by_rank(zonce=1, twice=62), "graph": by_rank(twice=62)}
    order = list(final(renamed, {"method": "rrf", "k": 60}))
    assert order.index("zonce") + 1 == order.index("twice")


def test_section_5_order_of_sources_would_decide_24_percent_of_rank_triples() -> None:
    triples = np.array(list(itertools.combinations(range(1, 51), 3)))
    terms = 1 / (60 + triples.T)
    orders = [terms[list(order)] for order in itertools.permutations(range(3))]
    naive = np.array([(one[0] + one[1]) + one[2] for one in orders])
    share = (naive != naive[0]).any(axis=0).mean()
    assert share == pytest.approx(0.24, abs=0.02)
    ours = np.array([sum_terms(one) for one in orders])
    assert (ours == ours[0]).all()
    assert ours[0].tolist() == [math.fsum(column) for column in terms.T.tolist()]


def test_score_spaces() -> None:
    spaces: dict[ScoreSpace, tuple[float, float]] = {
        "unit": (0.25, 0.75),
        "unbounded": (0.0, 1.0),
        "order": (0.5, 1.0),
        "logit": (1 / (1 + math.exp(-0.25)), 1 / (1 + math.exp(-0.75))),
        "log_prob": (math.exp(-2), math.exp(-1)),
    }
    for space, (low, high) in spaces.items():
        rerank = {"a": -2.0, "b": -1.0} if space == "log_prob" else {"a": 0.25, "b": 0.75}
        aligned = align(
            Qrels.from_dict({"q": {"a": 1}}),
            [Run.from_dict("bm25", {"q": {"a": 2.0, "b": 1.0}})],
            rerankers=[Run.from_dict("r", {"q": rerank})],
            spaces={"r": space},
        )
        system = System.model_validate(
            {"name": "s", "runs": ("bm25",), "blend": {"method": "replace", "reranker": "r"}}
        )
        ranking = rank_candidates(system, aligned)
        assert ranking.scores.tolist() == [pytest.approx(high), pytest.approx(low)]  # b, a
