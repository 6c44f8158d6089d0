"""Scores of one query on the unit scale."""

from __future__ import annotations

import pytest

from fusion_bench.data.records import ScoreSpace
from fusion_bench.methods.blend import to_unit_scale


@pytest.mark.parametrize(
    ("space", "scores", "unit"),
    [
        ("unit", [0.3, 0.7], [0.3, 0.7]),
        ("unbounded", [5.0, 15.0, 10.0], [0, 1, 0.5]),
        ("unbounded", [5.0, 5.0], [1, 1]),
        ("log_prob", [0.0, -1e9], [1, 0]),
        ("order", [9.0, 3.0, 3.0, 20.0], [0.75, 0.5, 0.25, 1.0]),
        ("order", [], []),
    ],
)
def test_scores_on_the_unit_scale(
    space: ScoreSpace, scores: list[float], unit: list[float]
) -> None:
    assert to_unit_scale(scores, space).tolist() == unit
