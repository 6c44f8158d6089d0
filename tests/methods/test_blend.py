"""Blends, and the unit scale of a reranker."""

from collections.abc import Mapping

import numpy as np
import pytest

from fusion_bench.data.alignment import align
from fusion_bench.data.qrels import Qrels
from fusion_bench.data.records import ScoreSpace
from fusion_bench.data.run import Run
from fusion_bench.errors import AlignmentError, ConfigError
from fusion_bench.experiment.system import System
from fusion_bench.methods.blend import blends
from fusion_bench.methods.blend.formulas import min_max_within
from fusion_bench.ranking.system_ranking import rank_candidates

FUSED = {f"d{n}": float(9 - n) for n in range(1, 6)}  # d1 first, d5 last


def final(
    blend: Mapping[str, object],
    rerank: Mapping[str, float],
    *,
    space: ScoreSpace = "unit",
    spaces: Mapping[str, ScoreSpace] | None = None,
    fusion: object = "rrf",
) -> list[str]:
    runs = align(
        Qrels.from_dict({"q": {"d1": 1}}),
        [Run.from_dict("bm25", {"q": FUSED})],
        rerankers=[Run.from_dict("r", {"q": rerank})],
        spaces={"r": space} if spaces is None else spaces,
    )
    data = {"name": "s", "runs": ("bm25",), "fusion": fusion, "blend": blend}
    ranking = rank_candidates(System.model_validate(data), runs)
    placed = [n for n in range(len(runs.documents)) if ranking.positions[n]]
    placed.sort(key=lambda n: int(ranking.positions[n]))
    return [runs.vocabulary[runs.documents[n]] for n in placed]


REPLACE = {"method": "replace", "reranker": "r"}
REVERSED = {f"d{n}": n / 10 for n in range(1, 6)}


def test_candidates_without_a_rerank_score() -> None:
    some = {"d2": 0.2, "d4": 0.4}
    with pytest.raises(
        AlignmentError,
        match=r"'s':.*'r'.*'d5'.*'q'.*\(3.*1.*50.*none\):.*'depth',.*'missing:.*zero'.*'missing:.*below'",
    ):
        final(REPLACE, some)
    below = {**REPLACE, "missing": "below"}
    assert final(below, some) == ["d4", "d2", "d1", "d3", "d5"]
    assert final({**below, "depth": 3}, some) == ["d2", "d1", "d3", "d4", "d5"]
    assert final({**REPLACE, "missing": "zero"}, some) == ["d4", "d2", "d1", "d3", "d5"]


def test_rerank_lists_that_are_not_there_or_mean_nothing() -> None:
    with pytest.raises(ConfigError, match=r"'s':.*'x' \(known:"):
        final({**REPLACE, "reranker": "x"}, REVERSED)
    with pytest.raises(
        ConfigError,
        match=r"'s':.*'r'.*score_space:.*log_prob,",
    ):
        final(REPLACE, REVERSED, spaces={})


def test_a_greatest_score_that_cannot_divide() -> None:
    negative = {
        "method": "weighted_score",
        "normalize": {"method": "z_score", "constant": 0},
        "missing": "zero",
    }
    linear = {"method": "linear", "reranker": "r", "retrieval": "fused_max_possible"}
    assert final(linear, REVERSED, fusion=negative)[0] == "d5"
    constant = {"method": "weighted_score", "normalize": "min_max_inverted"}
    assert final(linear, REVERSED, fusion=constant)[0] == "d5"
    runs = align(
        Qrels.from_dict({"q": {"d1": 1}}),
        [Run.from_dict("bm25", {"q": {"d1": -1.0, "d2": -2.0}})],
        rerankers=[Run.from_dict("r", {"q": {"d1": 0.1, "d2": 0.2}})],
        spaces={"r": "unit"},
    )
    system = System.model_validate(
        {"name": "s", "runs": ("bm25",), "fusion": "weighted_score", "blend": linear}
    )
    with pytest.raises(AlignmentError, match=r"-1.*query:.*fused_min_max"):
        rank_candidates(system, runs)


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"method": "replace"}, "reranker: is required"),
        ({**REPLACE, "depth": 0}, "depth: input"),
        ({**REPLACE, "missing": "skip"}, "missing: input"),
        ({**REPLACE, "tail": "cut"}, "tail: input"),
        ({**REPLACE, "skip_limit": -1}, "skip_limit: input"),
        ({**REPLACE, "min_score": float("nan")}, "min_score: input"),
        ({**REPLACE, "method": "linear", "beta": 1.1}, "beta: input"),
        ({**REPLACE, "method": "position_aware", "tiers": {0: 0.5}}, "tiers"),
        ({**REPLACE, "method": "position_aware", "tiers": {3: 1.5}}, "tiers"),
        ({**REPLACE, "method": "position_aware", "rest": -0.1}, "rest: input"),
    ],
)
def test_values_that_break_a_rule(config: Mapping[str, object], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        blends.build(config)


def test_tiers_by_rank_and_differences_that_overflow() -> None:
    blend = blends.build({**REPLACE, "method": "position_aware", "tiers": {10: 0.6, 3: 0.75}})
    assert list(blend.model_dump()["tiers"]) == [3, 10]
    greatest = float(np.finfo(np.float64).max)
    scaled = min_max_within(np.zeros(3, dtype=np.int64), np.array([greatest, -greatest, 0.0]))
    np.testing.assert_array_equal(scaled, [1.0, 0.0, 0.5])


# ── scores of one query on the unit scale
