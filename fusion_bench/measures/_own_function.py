"""A measure that calls a function of the user for each query."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from fusion_bench.config.own_methods import (
    FunctionMethod,
    UnfitValueError,
    require_number,
    show_value,
)
from fusion_bench.data.ordering import FloatArray
from fusion_bench.measures._base import Measure
from fusion_bench.measures.rankings import Ranking, has_grade


class FunctionMeasure(FunctionMethod, Measure):
    """A function of the grades of one query's list, and of the best grades that there are.

    It gets two lists: the grade of each returned document, the best first, None where it is
    unjudged, up to the cutoff; and all positive grades of the judgments, the greatest first. It is
    not called, and the value is 0, where either is empty.
    """

    given: ClassVar[tuple[str, ...]] = ("grades", "ideal")
    returned: ClassVar[str] = "a number"

    def compute_values(self, ranking: Ranking) -> FloatArray:
        """(Q,): the numbers of the function."""
        runs, shown = ranking.runs, ranking.positions > 0
        if ranking.judged_only:
            shown = shown & has_grade(runs)
        values = np.zeros(ranking.size)
        for q, query in enumerate(runs.queries):
            rows = np.flatnonzero(shown[runs.offsets[q] : runs.offsets[q + 1]]) + runs.offsets[q]
            rows = rows[np.argsort(ranking.positions[rows])][: self.cutoff]
            grades = [int(runs.grades[n]) if runs.judged[n] else None for n in rows.tolist()]
            ideal = runs.ideal_grades[runs.ideal_offsets[q] : runs.ideal_offsets[q + 1]].tolist()
            if not (grades and ideal):
                continue
            values[q] = self.call(f"query {query!r}", grades, ideal, read=_read_value)
        return values


def _read_value(value: object) -> float:
    if not isinstance(value, int | float | np.number):
        raise UnfitValueError(f"a finite number is needed, given {show_value(value)}")
    return require_number(value)
