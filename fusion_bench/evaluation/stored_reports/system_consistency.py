"""Whether the numbers of one system in a report agree."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np

from fusion_bench.data.ordering import FloatArray
from fusion_bench.evaluation.report_records.collection import Collection
from fusion_bench.evaluation.report_records.results.system import (
    CompletionBounds,
    MeasureResult,
    SystemResult,
)
from fusion_bench.evaluation.stored_reports.columns import ROUNDING, check_column, check_range
from fusion_bench.measures.bounds import is_bounded
from fusion_bench.stats.intervals import exact_mean
from fusion_bench.util.formatting import pluralize


def find_repeated(names: Sequence[str]) -> str | None:
    """The first name that stands there twice."""
    return next((name for name, count in Counter(names).items() if count > 1), None)


def check_system(collection: Collection, row: SystemResult) -> Iterator[str]:
    """What is wrong with one row of the table.

    Args:
        collection: Its collection.
        row: The row.
    """
    count = len(collection.queries)
    for name in collection.measures:
        if name not in row.measures:
            yield f"measures: no {name}"
    for name, result in row.measures.items():
        for problem in _check_measure(result, count, is_bounded=is_bounded(name)):
            yield f"measures.{name}.{problem}"
    is_primary_bounded = bool(collection.measures) and is_bounded(collection.primary_measure)
    for place, column in {"judged_only": row.judged_only, "filled": row.filled}.items():
        if column:
            yield from check_column(place, column, count, is_bounded=is_primary_bounded)
    yield from check_range("unjudged_share", (row.unjudged_share,))
    for item in row.slice_bounds:
        yield from _check_bounds(
            f"slice_bounds.{item.field}", item.bounds, is_bounded=is_primary_bounded
        )


def _check_bounds(place: str, bounds: CompletionBounds, *, is_bounded: bool) -> Iterator[str]:
    yield from check_range(f"{place}.judged", (bounds.judged,))
    if is_bounded:
        yield from check_range(place, (bounds.low, bounds.high))


def _check_measure(result: MeasureResult, count: int, *, is_bounded: bool) -> Iterator[str]:
    yield from check_column("values", result.values, count, is_bounded=is_bounded)
    values = _make_array(result.values)
    yield from _check_mean(result.mean, values)
    for number, trial in enumerate(result.trials):
        yield from check_column(f"trials.{number}", trial, count, is_bounded=is_bounded)
    yield from _check_trials(result, values)
    if result.bounds is not None:
        yield from _check_bounds("bounds", result.bounds, is_bounded=is_bounded)
    ends = {"low": result.low, "high": result.high}
    for kind, ties in {"ties": result.ties, "source_ties": result.source_ties}.items():
        if ties is not None:
            ends |= {f"{kind}.{end}": getattr(ties, end) for end in ("minimum", "maximum")}
    for place, end in ends.items():
        if is_bounded:
            yield from check_range(place, (end,))
        is_lower = place.endswith(("low", "minimum"))
        if end is not None and result.mean is not None:
            beyond = end - result.mean if is_lower else result.mean - end
            if beyond > ROUNDING:
                side = "above" if is_lower else "below"
                yield f"{place}: {end:g} lies {side} the mean {result.mean:g}"


def _check_mean(mean: float | None, values: FloatArray) -> Iterator[str]:
    """The mean is that of the values; none where a value is missing."""
    if not len(values):
        return
    expected = None if np.isnan(values).any() else exact_mean(values)
    if expected is None and mean is not None:
        yield f"mean: {mean:g}, and a value is missing, so that there is none"
    elif expected is not None and (mean is None or not abs(mean - expected) <= ROUNDING):
        yield (
            f"mean: {'none' if mean is None else f'{mean:g}'}, and the mean of its "
            f"{pluralize(len(values), 'value')} is {expected:g} (tolerance {ROUNDING:g})"
        )


def _check_trials(result: MeasureResult, values: FloatArray) -> Iterator[str]:
    """The values are the means over the trials."""
    if not result.trials or any(len(trial) != len(values) for trial in result.trials):
        return
    means = np.mean([_make_array(trial) for trial in result.trials], axis=0)
    if not np.allclose(means, values, rtol=0, atol=ROUNDING, equal_nan=True):
        yield f"trials: their means are not the values (tolerance {ROUNDING:g})"


def _make_array(values: Sequence[float | None]) -> FloatArray:
    """(Q,): NaN where a value is missing."""
    return np.array(values, dtype=np.float64)
