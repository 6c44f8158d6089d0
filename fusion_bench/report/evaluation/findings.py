"""What the numbers of a collection say, in sentences.

"No difference shown" is not "no difference", and the highest mean is not a proven best: a sentence
claims no more than was tested.
"""

from __future__ import annotations

from collections import Counter

from fusion_bench.evaluation.report_records import Collection, ComparisonResult, Report
from fusion_bench.report.evaluation.data_warnings import data_warnings
from fusion_bench.report.evaluation.fusion_finding import fusion_finding
from fusion_bench.report.page import Finding
from fusion_bench.util.formatting import (
    format_difference,
    format_number,
    format_p_value,
    is_known,
    pluralize,
)


def collection_findings(report: Report, collection: Collection) -> tuple[Finding, ...]:
    """What to know about a collection: findings, then warnings."""
    primary = collection.primary_measure
    pairs = (collection.comparison(row.name, primary) for row in collection.ranked_systems)
    comparisons = [comparison for comparison in pairs if comparison is not None]
    counts = Counter(comparison.answer or "not tested" for comparison in comparisons)
    verdicts = ", ".join(f"{count:,} {answer}" for answer, count in counts.most_common())
    text = f"Verdicts on {len(comparisons):,} compared systems: {verdicts}."
    findings = (
        _decision(report, collection, comparisons),
        Finding(text, key="verdict counts") if len(comparisons) > 1 else None,
        fusion_finding(report, collection),
        _power_finding(collection, comparisons),
        _headroom(collection),
    )
    warnings = data_warnings(report, collection)
    return (*(finding for finding in findings if finding is not None), *warnings)


def _decision(
    report: Report, collection: Collection, comparisons: list[ComparisonResult]
) -> Finding:
    """Whether a system is better than the baseline, which one, and which has the highest mean."""
    baseline, top = collection.baseline, collection.ranked_systems[0].name
    best = next((c.candidate for c in comparisons if c.answer == "better"), None)
    if not comparisons:
        text = f"{_describe_system(report, collection, top)} is the only system."
    elif best is None:
        text = f"No system is shown to be better than the baseline {baseline}. Keep the baseline."
    else:
        system = _describe_system(report, collection, best)
        text = f"{system} is better than the baseline {baseline}."
    if comparisons and top != best:
        system = _describe_system(report, collection, top)
        text += f" The highest {collection.primary_measure} is that of {system}."
    return Finding(text, "plain" if best is None else "better", "decision")


def _describe_system(report: Report, collection: Collection, name: str) -> str:
    """``name (nDCG@10 0.6000; +0.0100 [+0.0020, +0.0180], adjusted p .012; identical)``."""
    primary = collection.primary_measure
    mean = format_number(collection.system(name).measures[primary].mean)
    comparison = collection.comparison(name, primary)
    if comparison is None:
        return f"{name} ({primary} {mean})"
    difference = format_difference(comparison.difference, comparison.low, comparison.high)
    p = format_p_value(comparison.p_holm, alpha=report.alpha)
    verdict = "" if comparison.answer == "better" else f"; {comparison.answer}"
    return f"{name} ({primary} {mean}; {difference}, adjusted p {p}{verdict})"


def _power_finding(collection: Collection, comparisons: list[ComparisonResult]) -> Finding | None:
    """Whether there were too few queries to detect the observed difference."""
    if not comparisons or any(comparison.answer == "better" for comparison in comparisons):
        return None
    first = comparisons[0]
    detectable = first.min_detectable_difference or 0.0
    if first.answer != "no difference shown" or detectable <= abs(first.difference):
        return None
    groups = pluralize(len(set(collection.groups)), "group")
    return Finding(
        f"Too few queries for {first.candidate}: the minimum detectable difference (80 % power) "
        f"with {pluralize(len(collection.queries), 'query')} in {groups} is "
        f"{format_number(detectable)}; observed: {format_number(first.difference, signed=True)}.",
        key="power",
    )


def _headroom(collection: Collection) -> Finding | None:
    """How far the best system is from the best ceiling."""
    primary = collection.primary_measure
    best = collection.ranked_systems[0].measures[primary].mean
    ceilings = [
        (row.measures[primary].mean or 0.0, row)
        for row in collection.reference_rows
        if row.kind == "ceiling" and is_known(row.measures[primary].mean)
    ]
    if not is_known(best) or not ceilings:
        return None
    mean, row = max(ceilings, key=lambda pair: pair[0])
    gap = format_number(mean - (best or 0.0), signed=True)
    text = f"Headroom: {row.name} reaches {format_number(mean)}, {gap} above the best system"
    return Finding(f"{text} ({row.note}).", key="headroom")
