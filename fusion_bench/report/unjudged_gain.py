"""A gain over unjudged documents: said where the judged ones alone show little of it."""

from __future__ import annotations

from collections.abc import Iterator

from fusion_bench.evaluation.report_records import Collection, ComparisonResult, Report
from fusion_bench.report.paired import paired
from fusion_bench.report.tables import ranked
from fusion_bench.stats.intervals import MeanEstimate
from fusion_bench.util.formatting import (
    escape_control_chars,
    format_interval,
    format_number,
    pluralize,
)

__all__ = ["judged_alone"]

#: Less than this part of a difference is little of it.
LITTLE = 0.5


def judged_alone(report: Report, collection: Collection) -> Iterator[str]:
    """One sentence on the systems whose shown difference is not that of judged documents.

    A flip of the sign has a sentence of its own. Where every judged document is relevant, or
    what is not listed is known not to be, judged documents alone say nothing.
    """
    if collection.judgments == "complete" or not collection.knows_not_relevant:
        return
    found = [
        (row.name, compared, alone)
        for row in ranked(collection)
        if (compared := collection.comparison(row.name, collection.primary)) is not None
        and (alone := _alone(report, collection, compared)) is not None
        and _little(compared, alone)
    ]
    if not found:
        return
    name, compared, alone = min(found, key=lambda one: one[2].mean / one[1].difference)
    rest = f" The same goes for {pluralize(len(found) - 1, 'other system')}." if found[1:] else ""
    yield (
        f"Over judged documents alone the difference of {escape_control_chars(name)} to the "
        "baseline is "
        f"{format_number(alone.mean, signed=True)} "
        f"{format_interval(alone.low, alone.high, signed=True)}, not "
        f"{format_number(compared.difference, signed=True)}: much of it is judged documents "
        "standing "
        "above unjudged ones. Judge more, or, if what is not listed is not relevant, set "
        f"judgments: complete.{rest}"
    )


def _alone(
    report: Report, collection: Collection, compared: ComparisonResult
) -> MeanEstimate | None:
    """The difference over judged documents alone, of a system that is shown to differ."""
    if compared.verdict not in {"better", "worse"}:
        return None
    rows = {row.name: row for row in collection.systems}
    sides = [rows[name].judged_only for name in (compared.candidate, compared.baseline)]
    return paired(report, collection, *sides) if all(sides) else None


def _little(compared: ComparisonResult, alone: MeanEstimate) -> bool:
    """Whether judged documents show less than half of a difference, or maybe none."""
    if not compared.difference:
        return False
    low, high = compared.low, compared.high
    sure = low is not None and high is not None and (low > 0 or high < 0)
    unsure = not (alone.low > 0 or alone.high < 0)  # written so that NaN is unsure
    return alone.mean / compared.difference < LITTLE or (sure and unsure)
