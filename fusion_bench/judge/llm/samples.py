"""Several answers of one model about one pair become one grade."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from fusion_bench.judge.llm.answer import GradeAnswer, Problem


@dataclass(frozen=True)
class PairGrade:
    """What a model said of one pair.

    Attributes:
        query: Id of the query.
        document: Id of the document.
        answers: One a sample: the last attempt of each.
        grade: The grade; None = no more than half of the samples have one.
    """

    query: str
    document: str
    answers: tuple[GradeAnswer, ...]
    grade: int | None

    @property
    def samples(self) -> tuple[int, ...]:
        """The grades of the samples that have one."""
        return tuple(each.grade for each in self.answers if each.grade is not None)

    @property
    def spread(self) -> float:
        """Population standard deviation of these grades."""
        return statistics.pstdev(self.samples)

    @property
    def problem(self) -> Problem | None:
        """Why there is no grade: the most frequent problem of its samples."""
        problems = [each.problem for each in self.answers if each.problem is not None]
        return None if self.grade is not None else Counter(problems).most_common(1)[0][0]

    @property
    def reason(self) -> str:
        """The first sample's words for that problem."""
        return next((a.reason for a in self.answers if a.problem == self.problem), "")


def combine_samples(
    pair: tuple[str, str],
    answers: Sequence[GradeAnswer],
    grades: Sequence[int],
    how: Literal["majority", "mean"],
) -> PairGrade:
    """One grade of several answers.

    Args:
        pair: Query and document.
        answers: One a sample.
        grades: The grades of the scale.
        how: ``majority`` = the most frequent grade; ``mean`` = the grade nearest to the mean. Of
            equals the least, so that no tie raises a grade.
    """
    given = [answer.grade for answer in answers if answer.grade is not None]
    grade = None
    if 2 * len(given) > len(answers):
        if how == "majority":
            grade = min(statistics.multimode(given))
        else:
            mean = statistics.fmean(given)
            grade = min(grades, key=lambda each: (abs(each - mean), each))
    return PairGrade(*pair, tuple(answers), grade)
