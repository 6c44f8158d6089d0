from __future__ import annotations

import pytest

from fusion_bench.errors import AlignmentError, ConfigError
from fusion_bench.ranking.system_ranking import rank_candidates
from tests.evaluation.test_scores import NO_LOW, Plain, lists, runs, system


def test_a_source_of_weight_0_brings_no_candidates_and_no_bonus() -> None:
    off = system(fusion={"method": "rrf", "weights": {"keyword": 0}})
    assert lists(off) == lists(system(runs=("dense",)))
    assert lists(off)["q1"] == ["c", "d"]
    v2 = system(fusion={"method": "rrf_v2", "weights": {"keyword": 0}})
    ranking = rank_candidates(v2, runs(), {})
    assert float(ranking.scores.max()) == pytest.approx(1 / 61 + 0.05)


def test_depth_cuts_before_fusion_and_top_k_last() -> None:
    assert lists(system(depth=1))["q1"] == ["c", "a"]
    assert lists(system(depth={"bm25": 1}))["q1"] == ["c", "a", "d"]
    assert lists(system(top_k=2))["q1"] == ["c", "a"]
    ranking = rank_candidates(system(top_k=1), runs(), {})
    assert sorted(ranking.ranks_before_cut[:4]) == [1, 2, 3, 4]
    assert sorted(ranking.positions[:4]) == [0, 0, 0, 1]


def test_min_relevance_drops_by_the_final_score() -> None:
    fused = lists(system(min_relevance=1 / 62))
    assert fused["q1"] == ["c", "a", "d", "b"]
    assert lists(system(min_relevance=1 / 61))["q1"] == ["c", "a"]
    blend = {"method": "replace", "reranker": "r", "missing": "below"}
    assert lists(system(blend=blend, min_relevance=0.05, runs=("bm25",)))["q1"] == ["b", "a"]


def test_ties_begin_where_their_group_does() -> None:
    ranking = rank_candidates(system(), runs(), {})
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
        rank_candidates(system(fusion={"method": "rrf", "weights": {"x": 1}}), runs(), {})
    with pytest.raises(AlignmentError, match=r"^system.*'s':.*normalize:.*theoretical_min_max"):
        rank_candidates(
            system(fusion={"method": "weighted_score", "normalize": NO_LOW}), runs(), {}
        )


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
    first, second = (rank_candidates(system(top_k=k), table, {}) for k in (1, 2))
    assert first.runs is second.runs
    assert first.scores is second.scores
