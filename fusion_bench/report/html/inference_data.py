"""What a test says of a difference, as plain data for the views of a page."""

from __future__ import annotations

from typing import Any

from fusion_bench.evaluation.report_records.report import Report
from fusion_bench.evaluation.report_records.results.comparison import ComparisonResult
from fusion_bench.report.answer_texts import format_adjusted_p, format_answer
from fusion_bench.stats.comparison import Comparison


def inference_data(report: Report, comparison: Comparison | ComparisonResult) -> dict[str, Any]:
    """Interval, p, detectable difference and verdict of a comparison.

    Args:
        report: Whose level and least gain the texts name.
        comparison: What was tested.
    """
    return {
        "low": comparison.low,
        "high": comparison.high,
        "p": format_adjusted_p(comparison, report.alpha),
        "detectable": comparison.min_detectable_difference,
        "answer": comparison.answer,
        "verdict": format_answer(comparison.answer, report.min_gain, alpha=report.alpha),
        "few_changes": comparison.few_changes,
    }
