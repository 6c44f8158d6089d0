"""What the numbers of a collection say, in sentences.

"No difference shown" is not "no difference", and the highest mean is not a proven best: a sentence
claims no more than was tested.
"""

from __future__ import annotations

import math
from collections import Counter

from fusion_bench.evaluation.report_records import (
    Collection,
    ComparisonResult,
    Report,
    SystemResult,
)
from fusion_bench.report.evaluation.data_warnings import data_warnings
from fusion_bench.report.evaluation.fusion_finding import fusion_finding
from fusion_bench.report.page import Finding
from fusion_bench.util.formatting import (
    format_interval,
    format_number,
    format_p_value,
    is_known,
    pluralize,
)


def collection_findings(report: Report, collection: Collection) -> tuple[Finding, ...]:
    """What to know about a collection: findings, then warnings."""
    findings = (
        _decision(report, collection),
        _verdict_counts(collection),
        fusion_finding(report, collection),
        _power_finding(collection),
        _headroom(collection),
    )
    warnings = data_warnings(report, collection)
    return (*(finding for finding in findings if finding is not None), *warnings)


def _decision(report: Report, collection: Collection) -> Finding:
    """Whether a system is better than the baseline, and which."""
    primary, baseline = collection.primary_measure, collection.baseline
    systems = collection.ranked_systems
    top, comparisons = systems[0], _primary_comparisons(collection)
    if not comparisons:
        mean = format_number(top.measures[primary].mean)
        text = f"{baseline} is the only system ({primary} {mean}); there is nothing to compare."
        return Finding(text, key="decision")
    best = next((c for c in comparisons if c.answer == "better"), None)
    if best is None:
        text = f"No system is shown to be better than the baseline {baseline}. Keep the baseline."
    else:
        mean = format_number(collection.system(best.candidate).measures[primary].mean)
        difference = _format_comparison(best, report.alpha)
        text = (
            f"{best.candidate} is better than the baseline {baseline}: {primary} {mean}, "
            f"difference {difference}."
        )
    if top.name == baseline:
        text += f" The baseline also has the highest {primary}."
    elif best is None or top.name != best.candidate:
        text += f" {_highest_mean(report, collection, top)}"
    return Finding(text, "plain" if best is None else "better", "decision")


def _primary_comparisons(collection: Collection) -> list[ComparisonResult]:
    """On the primary measure, in the order of the primary table."""
    pairs = (
        collection.comparison(row.name, collection.primary_measure)
        for row in collection.ranked_systems
    )
    return [comparison for comparison in pairs if comparison is not None]


def _highest_mean(report: Report, collection: Collection, top: SystemResult) -> str:
    """Why the highest mean is not a proven best."""
    comparison = collection.comparison(top.name, collection.primary_measure)
    if comparison is None:
        return ""
    reasons = {
        "identical": "it equals the baseline on every query",
        "no verdict": "no verdict, because the sign differs over judged documents alone",
    }
    reason = reasons.get(
        comparison.answer or "", "not significant, which does not prove that there is no gain"
    )
    return (
        f"{top.name} has the highest {collection.primary_measure}, "
        f"{format_number(top.measures[collection.primary_measure].mean)} "
        f"({_format_comparison(comparison, report.alpha)}): {reason}."
    )


def _format_comparison(comparison: ComparisonResult, alpha: float) -> str:
    """``+0.0100 [+0.0020, +0.0180], adjusted p .012``."""
    interval = format_interval(comparison.low, comparison.high, signed=True)
    p = format_p_value(comparison.p_holm, alpha=alpha)
    return f"{format_number(comparison.difference, signed=True)} {interval}, adjusted p {p}"


def _verdict_counts(collection: Collection) -> Finding | None:
    """How many systems got each verdict; None with fewer than two comparisons."""
    verdicts = Counter(
        c.answer for c in collection.comparisons if c.measure == collection.primary_measure
    )
    total = sum(verdicts.values())
    if total <= 1:
        return None
    labels = {
        "better": "better than the baseline",
        "worse": "worse",
        "no difference shown": "without a shown difference",
        "no verdict": "without a verdict",
        "identical": "identical",
    }
    counts = [f"{verdicts[key]} {label}" for key, label in labels.items() if verdicts[key]]
    text = f"Verdicts on {total:,} compared systems: {', '.join(counts)}."
    return Finding(text, key="verdict counts")


def _power_finding(collection: Collection) -> Finding | None:
    """Whether there were too few queries to detect the observed difference."""
    comparisons = _primary_comparisons(collection)
    if not comparisons or any(c.answer == "better" for c in comparisons):
        return None
    comparison = comparisons[0]
    detectable = comparison.min_detectable_difference
    if comparison.answer != "no difference shown" or detectable is None:
        return None
    if detectable <= abs(comparison.difference):
        return None
    groups = len(set(collection.groups))
    grouped = f" in {pluralize(groups, 'group')}" if groups < len(collection.queries) else ""
    return Finding(
        f"Too few queries for {comparison.candidate}: the minimum detectable difference (80 % "
        f"power) with {pluralize(len(collection.queries), 'query')}{grouped} is "
        f"{format_number(detectable)}; observed: "
        f"{format_number(comparison.difference, signed=True)}.",
        key="power",
    )


def _headroom(collection: Collection) -> Finding | None:
    """How far the best system is from the best ceiling."""
    best = collection.ranked_systems[0].measures[collection.primary_measure].mean
    means = {
        row.name: mean
        for row in collection.reference_rows
        if row.kind == "ceiling" and is_known(mean := row.measures[collection.primary_measure].mean)
    }
    if best is None or math.isnan(best) or not means:
        return None
    name = max(means, key=lambda name: means[name] or 0.0)
    mean = means[name] or 0.0
    return Finding(
        f"Headroom: {name} reaches {format_number(mean)}, "
        f"{format_number(mean - best, signed=True)} above the best system "
        f"({collection.system(name).note}).",
        key="headroom",
    )
