"""The tables of slices, such as query types: where a difference comes from."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from fusion_bench.data.ordering import FloatArray
from fusion_bench.data.records import sort_field_values
from fusion_bench.evaluation.report_records.collection import Collection
from fusion_bench.evaluation.report_records.report import Report
from fusion_bench.evaluation.report_records.results.system import SystemResult
from fusion_bench.measures.aliases import display_measure
from fusion_bench.report.evaluation.paired_difference import paired_difference
from fusion_bench.report.judging.judged_columns import JudgedColumns
from fusion_bench.report.page import Column, Row, Table, Tone
from fusion_bench.stats.trials.paired_trials import paired_sides
from fusion_bench.util.formatting import (
    format_coverage,
    format_interval,
    format_number,
)

#: So many of the best systems are shown for each slice.
MAX_SYSTEMS = 4
#: What the slices of a field are called, where that is not its name.
TITLES = {"type": "query type"}
#: Differences up to this are ties, as in the comparison itself.
NOISE = 1e-12


def slice_tables(report: Report, collection: Collection) -> Iterator[Table]:
    """A table for each sliced field that has two values or more."""
    for field in report.settings.get("slices", ["type"]):
        known = field == "type" or field in collection.slices
        if known and (table := slice_table(report, collection, field)) is not None:
            yield table


def slice_table(report: Report, collection: Collection, field: str) -> Table | None:
    """The baseline and the best systems on each slice; None with fewer than two slices.

    Args:
        report: The report.
        collection: Its part on one dataset.
        field: The field of the queries whose values are the slices.
    """
    primary, column = collection.primary_measure, collection.slice_values(field)
    values = sort_field_values(column)
    names = [row.name for row in collection.ranked_systems]
    candidates = [name for name in names if name != collection.baseline][:MAX_SYSTEMS]
    if len(values) < 2 or not candidates:
        return None
    base = collection.system(collection.baseline)
    shown = [base, *map(collection.system, candidates)]
    known = {
        (row.name, item.value): item.bounds
        for row in shown
        for item in row.slice_bounds
        if item.field == field
    }
    judged = JudgedColumns.of_rows(known.values())
    columns = (
        Column(field, is_text=True),
        Column("system", is_text=True, is_name=True),
        Column("queries"),
        Column(primary),
        *judged.columns,
        *map(Column, ("difference", f"{format_coverage(report.alpha)} interval")),
        Column("w/t/l", is_optional=True),
    )
    rows: list[Row] = []
    for value in values:
        mask = np.array([other == value for other in column])
        title = f"(no {field})" if value is None else value
        count = f"{mask.sum():,}"
        for row in shown:
            is_base = row is base
            first = (title if is_base else "", row.name, count if is_base else "")
            bounds = judged.cells(known.get((row.name, value)))
            means = (_masked_mean(collection, row, mask), *bounds)
            differences = ("", "", "")
            if not is_base:
                differences = _difference_cells(report, collection, row, mask)
            tone: Tone = "baseline" if is_base else "plain"
            rows.append(Row((*first, *means, *differences), tone))
    note = (
        f"The baseline and the best {len(candidates)} systems by {primary} over all queries. "
        f"Intervals are not adjusted for the number of {'types' if field == 'type' else 'slices'}; "
        "no verdict rests on them."
    )
    title = f"{display_measure(primary)} by {TITLES.get(field, field)}"
    return Table(title, columns, tuple(rows), (note, *judged.notes))


def _values(collection: Collection, row: SystemResult, mask: NDArray[np.bool_]) -> FloatArray:
    return np.array(row.measures[collection.primary_measure].values, dtype=np.float64)[mask]


def _masked_mean(collection: Collection, row: SystemResult, mask: NDArray[np.bool_]) -> str:
    values = _values(collection, row, mask)
    finite = values[np.isfinite(values)]
    return format_number(float(finite.mean()) if len(finite) else None)


def _trial_sides(
    collection: Collection, first: SystemResult, second: SystemResult
) -> tuple[FloatArray | None, ...]:
    """What of two systems varies over their trials."""
    if first.trials is None and second.trials is None:
        return ()
    values = (
        np.array(row.measures[collection.primary_measure].trials, dtype=np.float64)
        if row.trials
        else None
        for row in (first, second)
    )
    lists = (frozenset(row.trials.lists if row.trials else ()) for row in (first, second))
    return paired_sides(*values, is_shared=not next(lists).isdisjoint(next(lists)))


def _difference_cells(
    report: Report, collection: Collection, row: SystemResult, mask: NDArray[np.bool_]
) -> tuple[str, str, str]:
    """Difference from the baseline, interval, wins/ties/losses."""
    pair = (row, collection.system(collection.baseline))
    values = [item.measures[collection.primary_measure].values for item in pair]
    result = paired_difference(
        report, collection, *values, mask=mask, trials=_trial_sides(collection, *pair)
    )
    if result is None:
        return ("n/a", "n/a", "")
    first, second = (_values(collection, item, mask) for item in pair)
    difference = (first - second)[np.isfinite(first - second)]
    wins, losses = (difference > NOISE).sum(), (difference < -NOISE).sum()
    counts = f"{wins:,}/{len(difference) - wins - losses:,}/{losses:,}"
    interval = format_interval(result.low, result.high, signed=True)
    return (format_number(result.mean, signed=True), interval, counts)
