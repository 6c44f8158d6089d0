"""What every kind of measure says of the completions of two lists."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from fusion_bench.data.ordering import FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class Extremes:
    """The least and greatest difference, first − second, that some completion gives each query.

    Attributes:
        low: (Q,).
        high: (Q,).
        low_grades: (m,): the grades of a completion that gives every query its least difference;
            judged documents keep theirs. Where the ends are bounds, a completion near them.
        high_grades: (m,): the same for the greatest.
        is_exact: Completions reach both ends; else no completion lies beyond them.
    """

    low: FloatArray
    high: FloatArray
    low_grades: IntArray
    high_grades: IntArray
    is_exact: bool = True


class CompletionModel(Protocol):
    """One measure over the first documents of two systems, as a function of unknown grades."""

    def find_extremes(self) -> Extremes:
        """The least and greatest difference of each query."""

    def differences(self, grades: IntArray) -> FloatArray:
        """(Q,): first − second where the m documents have these grades."""

    def grade_effects(self, grades: IntArray) -> FloatArray:
        """(m,): how far the grade of each unjudged document alone moves its query's difference.

        That is the greatest less the least difference over the grades of the scale, the other
        documents being graded as given; 0 for a judged document.
        """
