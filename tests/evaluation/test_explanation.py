"""Traces by hand, and the sentences made of them."""

import re
from dataclasses import replace

import numpy as np
import pytest

from fusion_bench.data.aligned_runs import AlignedRuns, Ties
from fusion_bench.data.alignment import align
from fusion_bench.data.qrels import Qrels
from fusion_bench.data.records import Query, ScoreSpace
from fusion_bench.data.run import Run
from fusion_bench.errors import ConfigError
from fusion_bench.evaluation.explanation import (
    Explanation,
    ScoreTerm,
    ScoreTrace,
    explain_order,
    explain_ranking,
    rerank_formula,
    retrieval_formula,
)
from fusion_bench.experiment.system import System
from fusion_bench.methods.blend import Fused

RUNS = {
    "bm25": {"q": {"d1": 9.0, "d2": 8.0, "d3": 7.0}},
    "dense": {"q": {"d2": 0.9, "d4": 0.8}},
}
ROLES = {"bm25": frozenset({"keyword"}), "dense": frozenset({"question", "semantic"})}
SPACES: dict[str, ScoreSpace] = {"r": "unit"}


def runs(ties: Ties = "trec") -> AlignedRuns:
    return align(
        Qrels.from_dict({"q": {"d2": 2, "d1": 0}, "other": {"d1": 1}}),
        [Run.from_dict(name, lists, roles=ROLES[name]) for name, lists in RUNS.items()],
        rerankers=[Run.from_dict("r", {"q": {"d1": 0.9, "d2": 0.2, "d4": 0.4}})],
        spaces=SPACES,
        queries={"q": Query("q", type="local", confidence=0.9)},
        ties=ties,
    )


def explained(ties: Ties = "trec", **options: object) -> Explanation:
    system = System.model_validate({"name": "s", "runs": ["bm25", "dense"], **options})
    return explain_ranking(system, runs(ties=ties), "q")


def of(found: Explanation, document: str) -> ScoreTrace:
    trace = found.find_trace(document)
    assert trace is not None
    return trace


def test_every_term_of_rrf_v2() -> None:
    found = explained(fusion={"method": "rrf_v2"})
    assert [trace.document for trace in found.traces] == ["d2", "d1", "d4", "d3"]
    assert (found.method, found.query_type, found.ties) == ("rrf_v2", None, "trec")
    best = found.traces[0]
    keyword, semantic = frozenset(ROLES["bm25"]), ROLES["dense"]
    assert best.terms == (
        ScoreTerm("bm25", 1 / 62, "bm25", tuple(sorted(keyword)), 2, 8.0, 1.0),
        ScoreTerm("dense", 2 / 61, "dense", tuple(sorted(semantic)), 1, 0.9, 2.0),
        ScoreTerm("bonus", 0.05),
    )
    assert (best.grade, best.rank, best.fused_rank, best.tier) == (2, 1, 1, "ranked")
    assert best.recomputed_score == best.score == best.fused_score
    assert (of(found, "d1").grade, of(found, "d4").grade) == (0, None)
    absent = of(found, "d3").terms[1]
    assert (absent.rank, absent.score, absent.value) == (None, None, 0)
    assert found.find_trace("d9") is None


def test_the_blend_of_a_candidate_and_those_it_leaves_alone() -> None:
    blend = {
        "method": "position_aware",
        "reranker": "r",
        "retrieval": "reciprocal_rank",
        "missing": "below",
        "depth": 3,
    }
    found = explained(blend=blend)
    first = of(found, "d2")
    assert first.blend is not None
    assert (first.blend.raw, first.blend.rerank, first.blend.rerank_weight) == (0.2, 0.2, 0.25)
    assert (first.blend.retrieval, first.blend.retrieval_weight) == (1.0, 0.75)
    assert first.contributions == {"retrieval": 0.75, "rerank r": 0.05}
    assert of(found, "d3").blend is None
    assert of(found, "d3").tier.startswith("beyond the ")
    unscored = explained(blend={**blend, "depth": 4})
    assert of(unscored, "d3").tier.startswith("without a rerank score")


def test_what_is_cut_and_what_is_dropped_comes_last() -> None:
    found = explained(top_k=1, min_relevance=0.0162)
    assert [trace.rank for trace in found.traces] == [1, None, None, None]
    assert found.traces[0].document == "d2"
    assert (of(found, "d1").tier, of(found, "d1").rank_before_cut) == ("ranked", 2)
    assert of(found, "d1").is_cut
    assert not of(found, "d3").is_cut
    assert of(found, "d3").tier == "dropped"
    assert "(dropped)" in explain_order(found.traces[0], of(found, "d3"), "trec")


def test_weights_and_numbers_by_query_type_are_those_of_the_query() -> None:
    weights = {
        "local": {"keyword": 0.8, "semantic": 0.2},
        "hybrid": {"keyword": 0.5, "semantic": 0.5},
    }
    found = explained(weights_by_type=weights)
    assert found.query_type == "local"
    assert [term.weight for term in found.traces[0].terms] == [0.8, 0.2]
    blend = {"method": "linear", "reranker": "r", "missing": "below"}
    beta = {"by_query_type": {"local": 0.25, "hybrid": 0.5}}
    found = explained(blend={**blend, "beta": beta})
    assert found.query_type == "local"
    assert found.traces[0].blend is not None
    assert found.traces[0].blend.rerank_weight == 0.25


@pytest.mark.parametrize(
    ("retrieval", "space", "words"),
    [
        ("fused", "unit", ("the fused score", "raw 0.4")),
        ("reciprocal_rank", "logit", ("reciprocal_rank: 1 / 3", "sigmoid of raw 0.4")),
        ("fused_max_possible", "order", ("", "order: raw 0.4 among 3 candidates")),
        ("fused_min_max", "unbounded", ("", "min-max: (0.4 − 0.2) / (0.9 − 0.2)")),
    ],
)
def test_how_both_terms_of_a_blend_came_about(
    retrieval: str, space: ScoreSpace, words: tuple[str, str]
) -> None:
    blend = {"method": "linear", "reranker": "r", "retrieval": retrieval, "missing": "zero"}
    system = System.model_validate({"name": "s", "runs": ["bm25", "dense"], "blend": blend})
    mixed = of(explain_ranking(system, replace(runs(), spaces={"r": space}), "q"), "d4").blend
    assert mixed is not None
    said = (mixed.retrieval_formula, mixed.rerank_formula)
    assert said[0] == words[0] or not words[0]
    assert said[1] == words[1]
    if "/" in said[0]:  # what is said is what was computed
        assert value(said[0].partition(": ")[2]) == pytest.approx(mixed.retrieval, rel=1e-4)
    if space == "unbounded":
        assert value(said[1].partition(": ")[2]) == pytest.approx(mixed.rerank, rel=1e-4)


def value(words: str) -> float:
    parts = [float(number) for number in re.findall(r"[\d.]+(?:e-?\d+)?", words)]
    if len(parts) == 2:
        return parts[0] / parts[1]
    return (parts[0] - parts[1]) / (parts[2] - parts[3])


def test_candidates_without_a_spread_and_without_a_score() -> None:
    fused = Fused(np.full(3, 0.5), np.array([1, 2, 3]), np.ones(1), np.full(3, 0.5))
    everyone = np.full(3, fill_value=True)
    said = retrieval_formula("fused_min_max", fused, everyone, 1)
    assert said is not None
    assert all(part in said for part in ("fused_min_max: ", "0.5", "1"))
    assert rerank_formula("unit", np.array([np.nan]), np.nan).endswith("lacks it: 0")


def test_queries_without_judgments_or_answers() -> None:
    system = System(name="s", runs=("bm25",))
    with pytest.raises(ConfigError, match=r"'q9' among the 2 .* 'q'\?"):
        explain_ranking(system, runs(), "q9")
    assert explain_ranking(System(name="s", runs=("bm25",)), runs(), "other").traces == ()


# ── why A stands above B


def test_what_decides_is_the_tier_the_greatest_term_or_what_a_ceiling_hides() -> None:
    found = explained()
    words = explain_order(of(found, "d2"), of(found, "d1"), found.ties)
    assert words.startswith("0.03252 > 0.01639: mostly dense (+0.01639), ")
    assert words.endswith(" bm25 -0.0002644")
    found = explained(blend={"method": "replace", "reranker": "r", "depth": 2})
    above, below = found.traces[1], found.traces[2]
    words = explain_order(above, below, found.ties)
    assert words.startswith(f"{above.document} is ranked, {below.document} is beyond the rerank")
    fusion = {"method": "rrf", "normalize": "three_lists", "weights": {"bm25": 9, "dense": 4}}
    found = explained(fusion=fusion)
    above, below = found.traces[:2]
    assert above.score == below.score == 1.0
    assert above.recomputed_score == 1.0
    assert "reach the limit; " in explain_order(above, below, found.ties)


def test_ties_go_by_the_rule() -> None:
    found = explained(runs=["dense", "bm25"], depth=1)
    one, two = found.traces
    assert one.score == two.score
    assert explain_order(one, two, "trec").endswith("ranks first ('d2' > 'd1')")
    seen = explained(ties="first_seen", runs=["bm25", "dense"], depth=1)
    assert "returned first" in explain_order(seen.traces[0], seen.traces[1], "first_seen")
