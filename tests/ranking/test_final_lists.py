"""The final lists of any system."""

from typing import Any

import numpy as np
import pytest

from fusion_bench.data.alignment import align
from fusion_bench.data.qrels import Qrels
from fusion_bench.data.records import Query
from fusion_bench.data.run import Run
from fusion_bench.errors import AlignmentError, ConfigError
from fusion_bench.experiment.system import System
from fusion_bench.measures import parse_measure
from fusion_bench.ranking.final_lists import FinalLists, align_all_queries, make_final_lists
from fusion_bench.ranking.system_ranking import rank_candidates
from fusion_bench.ranking.system_scores import evaluate_systems
from tests.evaluation.test_scores import NO_LOW, Plain, lists, runs, system

A = Run.from_dict("a", {"q1": {"d1": 9.0, "d2": 8.0, "d3": 7.0}, "q2": {"d5": 1.0}})
B = Run.from_dict("b", {"q1": {"d3": 0.9, "d4": 0.8}, "q3": {"d1": 0.2}})
RERANK = Run.from_dict("r", {"q1": {"d4": 0.3, "d1": 0.2}})
BLEND = {"method": "replace", "reranker": "r", "depth": 3, "missing": "below"}


def lists_of(keys: dict[str, Any], queries: dict[str, Query] | None = None) -> FinalLists:
    system = System.model_validate({"name": "s", "runs": ["a", "b"], **keys})
    runs = align_all_queries([A, B], rerankers=[RERANK], queries=queries, spaces={"r": "unit"})
    return make_final_lists(system, runs)


def by_query(lists: FinalLists) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {query: [] for query in lists.queries}
    for query, document in zip(lists.query_ids, lists.document_ids, strict=True):
        found[query].append(document)
    return found


def test_every_answered_query_is_fused() -> None:
    lists = lists_of({})
    assert by_query(lists) == {"q1": ["d3", "d1", "d4", "d2"], "q2": ["d5"], "q3": ["d1"]}
    assert lists.ranks.tolist() == [1, 2, 3, 4, 1, 1]
    assert lists.scores[0] == 1 / 63 + 1 / 61


def test_sources_tell_where_a_document_comes_from() -> None:
    lists = lists_of({"blend": BLEND})
    assert lists.sources == ("a", "b", "r")
    row = lists.document_ids.index("d4")
    assert lists.source_ranks[:, row].tolist() == [0, 2, 1]
    assert np.isnan(lists.source_scores[0, row])
    assert lists.source_scores[1:, row].tolist() == [0.8, 0.3]


def test_a_source_of_weight_zero_has_no_ranks() -> None:
    lists = lists_of({"fusion": {"method": "rrf", "weights": {"a": 1, "b": 0}}})
    assert by_query(lists)["q1"] == ["d1", "d2", "d3"]
    assert not lists.source_ranks[1].any()


@pytest.mark.parametrize(
    ("fusion", "first"),
    [
        ({"method": "rrf"}, ["d4", "d1", "d3"]),
        ({"method": "weighted_score", "normalize": "none"}, ["d1", "d2", "d3"]),
    ],
)
def test_sorting_by_score_gives_the_order(fusion: dict[str, Any], first: list[str]) -> None:
    """Raw scores of up to 9 below rerank scores of 0.3 have to be lowered."""
    lists = lists_of({"fusion": fusion, "blend": BLEND})
    assert by_query(lists)["q1"][:3] == first
    assert (np.diff(lists.scores[: lists.offsets[1]]) <= 0).all()
    run = lists.to_run()
    assert Run.from_dict("again", run.to_dict()).digest() == run.digest()


def test_a_written_list_has_the_values_of_the_system() -> None:
    qrels = Qrels.from_dict({"q1": {"d4": 2, "d2": 1}, "q3": {"d1": 1}})
    measures = [parse_measure(name) for name in ("nDCG@10", "RR@10")]
    system = System.model_validate({"name": "s", "runs": ["a", "b"], "blend": BLEND})
    runs = align(qrels, [A, B], rerankers=[RERANK], spaces={"r": "unit"})
    [direct] = evaluate_systems([system], runs, measures)
    alone = System(name="s", runs=("s",))
    written = align(qrels, [lists_of({"blend": BLEND}).to_run()])
    [read] = evaluate_systems([alone], written, measures)
    assert read.values.tolist() == direct.values.tolist()


def test_queries_of_each_type_have_their_own_system() -> None:
    keys = {
        "by_query_type": {
            "local": {"fusion": {"method": "rrf", "weights": {"a": 0, "b": 1}}},
            "hybrid": {},
        }
    }
    lists = lists_of(keys, queries={"q1": Query("q1", type="local")})
    assert by_query(lists) == {"q1": ["d3", "d4"], "q2": ["d5"], "q3": ["d1"]}


def test_top_k_and_thresholds_cut() -> None:
    assert by_query(lists_of({"top_k": 1}))["q1"] == ["d3"]
    lists = lists_of({"min_relevance": 0.02})
    assert by_query(lists) == {"q1": ["d3"], "q2": [], "q3": []}
    assert lists.to_run().queries == ("q1",)


def test_a_reranker_of_other_queries_is_refused() -> None:
    other = Run.from_dict("r", {"other": {"d1": 1.0}})
    with pytest.raises(AlignmentError, match="query in common"):
        align_all_queries([A, B], rerankers=[other])


@pytest.mark.parametrize("size", [1e-9, 1.0, 1e9, 1e17])
def test_a_list_that_is_sorted_again_by_its_scores_stays_as_it_is(size: float) -> None:
    scores = [9 * size, 8 * size, 7 * size, 6 * size, 6 * size, 3 + 1e-10, 3.0, 3.0, 2.0, 1.0]
    run = Run.from_dict("a", {q: {f"d{i}": s for i, s in enumerate(scores)} for q in "pq"})
    rerank = Run.from_dict("r", {"p": {"d0": 0.1, "d2": 0.2}, "q": {"d1": 0.3}})
    fusion = {"method": "weighted_score", "normalize": "none"}
    system = System.model_validate({"name": "s", "runs": ["a"], "fusion": fusion, "blend": BLEND})
    runs = align_all_queries([run], rerankers=[rerank], spaces={"r": "unit"})
    lists = make_final_lists(system, runs)
    again = Run.from_dict("again", lists.to_run().to_dict()).to_dict()
    assert {query: list(documents) for query, documents in again.items()} == by_query(lists)


# ── system ranking


def test_ties_begin_where_their_group_does() -> None:
    ranking = rank_candidates(system(), runs())
    mine = slice(0, int(ranking.runs.offsets[1]))
    names = [ranking.runs.vocabulary[d] for d in ranking.runs.documents[mine]]
    assert dict(zip(names, ranking.tie_starts[mine].tolist(), strict=True)) == {
        "c": 1,
        "a": 2,
        "d": 3,
        "b": 3,
    }


def test_errors_name_the_system() -> None:
    with pytest.raises(ConfigError, match=r"^system 's': weights: 'x'"):
        rank_candidates(system(fusion={"method": "rrf", "weights": {"x": 1}}), runs())
    with pytest.raises(AlignmentError, match=r"^system.*'s':.*normalize:.*theoretical_min_max"):
        rank_candidates(system(fusion={"method": "weighted_score", "normalize": NO_LOW}), runs())


def test_weights_by_type_need_weights() -> None:
    odd = system(fusion=Plain(), weights_by_type={"hybrid": {"keyword": 1.0}})
    with pytest.raises(ConfigError, match="weights_by_type"):
        odd.of_class("hybrid")
    assert system().of_class("hybrid") == system()


def test_a_fusion_without_weights_lets_every_source_take_part() -> None:
    assert lists(system(fusion=Plain()))["q1"] == ["d", "c", "b", "a"]
    assert Plain().weight_homogeneity is None
    assert Plain().keeps_single_list


def test_systems_that_share_a_fusion_share_its_list() -> None:
    table = runs()
    first, second = (rank_candidates(system(top_k=k), table) for k in (1, 2))
    assert first.runs is second.runs
    assert first.scores is second.scores
