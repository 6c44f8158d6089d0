"""A gain over unjudged documents: reported where judged documents alone show little of it."""

from __future__ import annotations

from fusion_bench.evaluation.report_records import Collection, ComparisonResult, Report
from fusion_bench.report.evaluation.paired_difference import paired_difference
from fusion_bench.report.page import Finding
from fusion_bench.stats.intervals import MeanEstimate
from fusion_bench.util.formatting import format_interval, format_number, pluralize

#: Less than this part of a difference is little of it.
MIN_SHARE = 0.5


def unjudged_gain(report: Report, collection: Collection) -> Finding | None:
    """A warning about systems whose difference mostly disappears over judged documents alone.

    A flip of the sign has a warning of its own. Where every judged document is relevant, or
    unlisted documents are known to be not relevant, judged documents alone tell nothing.
    """
    if collection.judgments == "complete" or not collection.has_irrelevant_judgments:
        return None
    affected = [
        (comparison, judged)
        for row in collection.ranked_systems
        if (comparison := collection.comparison(row.name, collection.primary_measure)) is not None
        and (judged := _judged_difference(report, collection, comparison)) is not None
        and _is_little(comparison, judged)
    ]
    if not affected:
        return None
    comparison, judged = min(affected, key=lambda pair: pair[1].mean / pair[0].difference)
    count = len(affected) - 1
    others = f" The same holds for {pluralize(count, 'other system')}." if count else ""
    return Finding(
        f"Over judged documents alone, {comparison.candidate} differs from the baseline by "
        f"{format_number(judged.mean, signed=True)} "
        f"{format_interval(judged.low, judged.high, signed=True)} instead of "
        f"{format_number(comparison.difference, signed=True)}. Much of the difference comes from "
        "judged documents that rank above unjudged ones. Judge more documents; if unlisted "
        f"documents are not relevant, set judgments: complete.{others}",
        "warning",
        "unjudged gain",
    )


def _judged_difference(
    report: Report, collection: Collection, comparison: ComparisonResult
) -> MeanEstimate | None:
    """The difference over judged documents alone, of a system that is shown to differ."""
    if comparison.answer not in {"better", "worse"}:
        return None
    values = [
        collection.system(name).judged_only for name in (comparison.candidate, comparison.baseline)
    ]
    return paired_difference(report, collection, *values) if all(values) else None


def _is_little(comparison: ComparisonResult, judged: MeanEstimate) -> bool:
    """Whether judged documents show less than half of a difference, or possibly none."""
    if not comparison.difference:
        return False
    low, high = comparison.low, comparison.high
    is_sure = low is not None and high is not None and (low > 0 or high < 0)
    may_be_zero = not (judged.low > 0 or judged.high < 0)  # written so that NaN may be zero
    return judged.mean / comparison.difference < MIN_SHARE or (is_sure and may_be_zero)
