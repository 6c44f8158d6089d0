"""What a page of two reports says of their grades and queries, before anything else."""

from __future__ import annotations

from collections.abc import Iterator

from fusion_bench.evaluation.judge_checks.judge_warnings import find_judge_warnings
from fusion_bench.evaluation.report_records.data_warning import DataWarning
from fusion_bench.evaluation.report_records.report import Report
from fusion_bench.evaluation.synthetic_queries import warn_synthetic
from fusion_bench.report.page import Finding, Section


def grade_section(old: Report, new: Report) -> tuple[Section, ...]:
    """Machine judges and synthetic queries of both reports; none where people gave all of both.

    A warning of only one report names it.
    """
    before, after = ({each.text: each.key for each in _find_warnings(side)} for side in (old, new))
    findings = []
    for text, key in (before | after).items():
        start = ""
        if text not in after:
            start = "In the old report: "
        elif text not in before:
            start = "In the new report: "
        findings.append(Finding(f"{start}{text}", "warning", key))
    return (Section(findings=tuple(findings), key="judge"),) if findings else ()


def _find_warnings(report: Report) -> Iterator[DataWarning]:
    """Of several collections each is named."""
    for collection in report.collections:
        start = f"{collection.name}: " if len(report.collections) > 1 else ""
        for warning in (
            *find_judge_warnings(collection.judge, collection.runs),
            *warn_synthetic(collection.synthetic_queries),
        ):
            yield DataWarning(key=warning.key, text=f"{start}{warning.text}")
