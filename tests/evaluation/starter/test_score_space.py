"""What a rerank list's numbers mean, by their values."""

from __future__ import annotations

import pytest

from fusion_bench.data.run import Run
from fusion_bench.evaluation.starter import guess_score_space


@pytest.mark.parametrize(
    ("lists", "space"),
    [
        ([[0.9, 0.5, 0.0], [1.0]], "unit"),
        ([[0.0, 0.0]], "unit"),
        ([[-0.1, -2.5], [-30.0, -31.0]], "log_prob"),
        ([[4.5, 0.1, -9.0]], "logit"),
        ([[17.5, 0.1, -9.0]], "unbounded"),
        ([[0.5, 12.0]], "unbounded"),
        ([[3, 2, 1], [2, 1]], "order"),
        ([[1, 1 / 2, 1 / 3], [1, 1 / 2]], "order"),
        ([[-1, -2, -3], [-1]], "order"),
        ([[3, 2, 1], [2.5, 1]], "unbounded"),
        ([[1.0], [1.0]], "unit"),
    ],
)
def test_the_first_rule_that_fits_decides(lists: list[list[float]], space: str) -> None:
    ranked = {
        f"q{q}": {f"d{d}": float(score) for d, score in enumerate(scores)}
        for q, scores in enumerate(lists)
    }
    assert guess_score_space(Run.from_dict("r", ranked)).space == space
