"""Several answers become one grade; no tie and no gap raises it."""

from __future__ import annotations

from typing import Literal

import pytest

from fusion_bench.judging.llm_judge import GradeAnswer, combine_samples

REFUSED, MALFORMED = GradeAnswer(problem="refused", reason="no"), GradeAnswer(problem="malformed")


@pytest.mark.parametrize(
    ("given", "how", "grade", "spread"),
    [
        ((2,), "majority", 2, 0.0),
        ((3, 1, 3), "majority", 3, 0.9428),
        ((3, 3, 1, 1), "majority", 1, 1.0),
        ((3, 2), "mean", 2, 0.5),
        ((3, 3, 2), "mean", 3, 0.4714),
        ((0, 3), "mean", 1, 1.5),
    ],
)
def test_grades_of_samples(
    given: tuple[int, ...], how: Literal["majority", "mean"], grade: int, spread: float
) -> None:
    answers = [GradeAnswer(each) for each in given]
    pair = combine_samples(("q", "d"), answers, (0, 1, 2, 3), how)
    assert (pair.grade, pair.samples, pair.problem) == (grade, given, None)
    assert pair.spread == pytest.approx(spread, abs=1e-4)


def test_a_mean_is_the_nearest_grade_of_the_scale() -> None:
    answers = [GradeAnswer(0), GradeAnswer(4), GradeAnswer(4)]
    assert combine_samples(("q", "d"), answers, (0, 4), "mean").grade == 4


def test_more_than_half_of_the_samples_need_a_grade() -> None:
    half = combine_samples(("q", "d"), [GradeAnswer(3), REFUSED], (0, 3), "majority")
    assert (half.grade, half.problem, half.reason) == (None, "refused", "no")
    most = combine_samples(("q", "d"), [GradeAnswer(3), REFUSED, GradeAnswer(3)], (0, 3), "mean")
    assert (most.grade, most.problem) == (3, None)
    mixed = combine_samples(("q", "d"), [REFUSED, MALFORMED, MALFORMED], (0, 3), "mean")
    assert mixed.problem == "malformed"
