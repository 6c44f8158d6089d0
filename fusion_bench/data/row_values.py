"""Values of rows: parsed, checked, and the rows that reading options drop."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np

from fusion_bench.data.grouped_rows import GroupedRows, find_repeats, refuse_duplicates
from fusion_bench.data.ordering import FloatArray, IntArray
from fusion_bench.data.read_options import ReadOptions
from fusion_bench.errors import DataError


def _to_numbers(values: object, what: str) -> FloatArray:
    """Numbers of any kind as floats.

    Raises:
        DataError: One is no number; names the row.
    """
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        for row, value in enumerate(cast("Sequence[Any]", values)):
            try:
                float(value)
            except (TypeError, ValueError):
                raise DataError(f"{what} {value!r} is not a number", row=row) from None
        raise


def parse_scores(scores: object) -> FloatArray:
    """Shape (N,): finite numbers.

    Raises:
        DataError: One is not; names the row.
    """
    values = _to_numbers(scores, "score")
    if not np.isfinite(values).all():
        row = int(np.flatnonzero(~np.isfinite(values))[0])
        raise DataError(f"score {values[row]} is not a finite number", row=row)
    return values


def parse_grades(grades: object) -> IntArray:
    """Shape (N,): whole numbers, also such as 2.0.

    Raises:
        DataError: One is not; names the row.
    """
    if isinstance(grades, np.ndarray) and grades.dtype.kind in "iu":
        return grades.astype(np.int64, copy=False)
    values = _to_numbers(grades, "grade")
    fractions = np.flatnonzero(~(np.isfinite(values) & (values == np.round(values))))
    if len(fractions):
        row = int(fractions[0])
        raise DataError(f"grade {values[row]} is not a whole number", row=row)
    return values.astype(np.int64)


def drop_rows(
    grouped: GroupedRows, values: FloatArray, order: IntArray | slice, read_options: ReadOptions
) -> tuple[IntArray | slice, int]:
    """The rows that the options keep, in order, and how many duplicates they drop."""
    if read_options.drop_zero_scores and not values.all():
        order = np.arange(len(values))[order]
        order = order[values[order] != 0]
    if read_options.on_duplicate == "error":
        refuse_duplicates(grouped)
        return order, 0
    is_repeat = find_repeats(grouped, order)
    duplicates = int(is_repeat.sum())
    if duplicates:
        order = np.arange(len(values))[order][~is_repeat]
    return order, duplicates
