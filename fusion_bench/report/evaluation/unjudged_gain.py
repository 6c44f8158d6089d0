"""A gain over unjudged documents: reported where judged documents alone show little of it."""

from __future__ import annotations

from fusion_bench.evaluation.report_records.collection import Collection
from fusion_bench.evaluation.report_records.comparison_result import ComparisonResult
from fusion_bench.evaluation.report_records.report import Report
from fusion_bench.report.evaluation.paired_difference import paired_difference
from fusion_bench.stats.answers import BETTER, WORSE
from fusion_bench.stats.intervals import MeanEstimate
from fusion_bench.util.formatting import format_difference, format_number

#: Less than this part of a difference is little of it.
MIN_SHARE = 0.5


def describe_unjudged_gain(report: Report, collection: Collection) -> str:
    """Which systems' differences mostly disappear over judged documents alone; empty = none.

    A flip of the sign has a warning of its own. Where every judged document is relevant, or
    unlisted documents are known to be not relevant, judged documents alone tell nothing.
    """
    if collection.judgments == "complete" or not collection.has_irrelevant_judgments:
        return ""
    affected = []
    for comparison in collection.comparisons:
        if comparison.answer in (*BETTER, *WORSE) and comparison.difference:
            rows = map(collection.system, (comparison.candidate, comparison.baseline))
            values = [row.judged_only for row in rows]
            judged = paired_difference(report, collection, *values) if all(values) else None
            if judged is not None and _is_little(comparison, judged):
                affected.append((judged.mean / comparison.difference, comparison, judged))
    if not affected:
        return ""
    _, comparison, judged = min(affected, key=lambda triple: triple[0])
    return (
        f"Over judged documents alone, {comparison.candidate} differs from the baseline by "
        f"{format_difference(judged.mean, judged.low, judged.high)} instead of "
        f"{format_number(comparison.difference, signed=True)}. Much of the difference comes from "
        "judged documents that rank above unjudged ones. Judge more documents; if unlisted "
        f"documents are not relevant, set judgments: complete. Systems affected: {len(affected):,}."
    )


def _is_little(comparison: ComparisonResult, judged: MeanEstimate) -> bool:
    """Whether judged documents show less than half of a difference, or possibly none."""
    low, high = comparison.low, comparison.high
    is_sure = low is not None and high is not None and (low > 0 or high < 0)
    may_be_zero = not (judged.low > 0 or judged.high < 0)  # written so that NaN may be zero
    return judged.mean / comparison.difference < MIN_SHARE or (is_sure and may_be_zero)
