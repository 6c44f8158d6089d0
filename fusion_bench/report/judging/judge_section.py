"""What a page says of a machine judge, before anything else."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from fusion_bench.evaluation.judge_checks.judge_warnings import JUDGE_KEYS
from fusion_bench.evaluation.report_records.data_warning import DataWarning
from fusion_bench.report.page import Finding, Section


def judge_section(warnings: Iterable[DataWarning]) -> tuple[Section, ...]:
    """The first section of a page whose grades a model gave; none where people gave them.

    Args:
        warnings: All warnings; those about other things are left out.
    """
    keys = {each.text: each.key for each in warnings if each.key in JUDGE_KEYS}
    findings = tuple(Finding(text, "warning", key) for text, key in keys.items())
    return (Section(findings=findings, key="judge"),) if findings else ()


def drop_judge_findings(findings: Sequence[Finding]) -> tuple[Finding, ...]:
    """The findings without those that :func:`judge_section` shows."""
    return tuple(finding for finding in findings if finding.key not in JUDGE_KEYS)
