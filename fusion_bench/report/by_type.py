"""How the systems fare on each query type: rows for those who ask where a gain lies."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from fusion_bench.data.grouped_rows import factorize
from fusion_bench.data.ordering import FloatArray
from fusion_bench.evaluation.report_records import Collection, Report, SystemResult
from fusion_bench.report.tables import Column, Row, Table, coverage, level, ranked
from fusion_bench.stats.intervals import estimate_mean
from fusion_bench.util.formatting import escape_control_chars, format_interval, format_number

__all__ = ["by_type"]

#: So many of the best systems are shown for each type.
SHOWN = 4
#: Differences up to this are ties, as in the comparison itself.
NOISE = 1e-12


def by_type(report: Report, collection: Collection) -> Table | None:
    """The best systems and the baseline on each type; None where there are no types to tell apart.

    Args:
        report: For the level of the intervals.
        collection: What was found.
    """
    types = sorted(set(collection.types), key=lambda name: (name is None, name or ""))
    systems = _systems(collection)
    if len(types) < 2 or not systems:
        return None
    base = collection.system(collection.baseline)
    rows: list[Row] = []
    for name in types:
        mask = np.array([own == name for own in collection.types])
        title = "(no type)" if name is None else escape_control_chars(name)
        rows.append(
            Row((title, f"{mask.sum():,}", *_base_cells(collection, base, mask)), "baseline")
        )
        rows += [
            Row(
                (
                    "",
                    "",
                    escape_control_chars(row.name),
                    *_cells(report, collection, row, base, mask),
                )
            )
            for row in systems
        ]
    columns = (
        Column("type", left=True),
        Column("queries"),
        Column("system", left=True),
        Column(collection.primary),
        Column("difference"),
        Column(f"{coverage(report)} interval"),
        Column("w/t/l", optional=True),
    )
    note = (
        f"The baseline and the best {len(systems)} by {collection.primary} over all queries. Not "
        "adjusted for the number of types: no verdict rests on these."
    )
    return Table(f"{collection.primary} by query type", columns, tuple(rows), (note,))


def _systems(collection: Collection) -> list[SystemResult]:
    return [row for row in ranked(collection) if row.name != collection.baseline][:SHOWN]


def _values(collection: Collection, row: SystemResult, mask: NDArray[np.bool_]) -> FloatArray:
    found: FloatArray = np.array(row.measures[collection.primary].values, dtype=np.float64)
    return found[mask]


def _base_cells(
    collection: Collection, base: SystemResult, mask: NDArray[np.bool_]
) -> tuple[str, ...]:
    return (
        escape_control_chars(base.name),
        format_number(_mean(_values(collection, base, mask))),
        "",
        "",
        "",
    )


def _cells(
    report: Report,
    collection: Collection,
    row: SystemResult,
    base: SystemResult,
    mask: NDArray[np.bool_],
) -> tuple[str, ...]:
    own, other = (_values(collection, one, mask) for one in (row, base))
    difference = own - other
    there = np.isfinite(difference)
    if not there.any():
        return (format_number(_mean(own)), "n/a", "n/a", "")
    groups = factorize(collection.groups)[0][mask][there]
    found = estimate_mean(
        difference[there],
        groups,
        alpha=level(report),
        interval=report.settings.get("interval", "t"),
        seed=int(report.settings.get("seed", 0)),
    )
    wins, losses = (difference > NOISE).sum(), (difference < -NOISE).sum()
    counts = f"{wins:,}/{there.sum() - wins - losses:,}/{losses:,}"
    reach = format_interval(found.low, found.high, signed=True)
    return (format_number(_mean(own)), format_number(found.mean, signed=True), reach, counts)


def _mean(values: FloatArray) -> float:
    finite = values[np.isfinite(values)]
    return float(finite.mean()) if len(finite) else math.nan
