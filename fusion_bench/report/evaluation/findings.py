"""What the numbers of a collection say, in sentences.

"Not shown" is not "no difference", and the highest mean is not a proven best: a sentence
claims no more than was tested.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from fusion_bench.evaluation.report_records.collection import Collection
from fusion_bench.evaluation.report_records.report import Report
from fusion_bench.evaluation.report_records.results.comparison import ComparisonResult
from fusion_bench.report.answer_texts import format_adjusted_p, format_answer, format_margin
from fusion_bench.report.evaluation.answer_findings import answer_findings
from fusion_bench.report.evaluation.data_warnings import data_warnings
from fusion_bench.report.evaluation.fusion_finding import fusion_finding
from fusion_bench.report.evaluation.group_finding import group_finding
from fusion_bench.report.evaluation.trial_tables import trial_findings
from fusion_bench.report.page import Finding
from fusion_bench.stats.answers import NOT_SHOWN, SHOWN
from fusion_bench.util.formatting import (
    format_change,
    format_difference,
    format_number,
    is_known,
    pluralize,
)


def collection_findings(report: Report, collection: Collection) -> tuple[Finding, ...]:
    """What to know about a collection: findings, then warnings."""
    comparisons = collection.ranked_comparisons
    counts = Counter(_describe_answer(report, each) or "not tested" for each in comparisons)
    verdicts = ", ".join(f"{count:,} {answer}" for answer, count in counts.most_common())
    systems = f"{len(comparisons):,} compared systems{collection.condition}"
    text = f"Verdicts on {systems}: {verdicts}."
    findings = (
        decision_finding(report, collection),
        Finding(text, key="verdict counts") if len(comparisons) > 1 else None,
        *compared_findings(collection),
        fusion_finding(report, collection),
        _power_finding(collection, comparisons),
        _headroom(collection),
        group_finding(report, collection),
        *trial_findings(collection),
    )
    warnings = data_warnings(report, collection)
    return (*(finding for finding in findings if finding is not None), *warnings)


def compared_findings(collection: Collection) -> Iterator[Finding]:
    """The first group, and what qualifies the answers."""
    return answer_findings(
        collection.ranked_comparisons,
        collection.first_group,
        systems=len(collection.competitors),
        queries=len(collection.queries),
        groups=len(set(collection.groups)),
    )


def decision_finding(report: Report, collection: Collection) -> Finding:
    """Whether a system is better than the baseline, which one, and which has the highest mean."""
    comparisons = collection.ranked_comparisons
    baseline, top = collection.baseline, collection.ranked_systems[0].name
    better = collection.best_improvement
    if not comparisons:
        system = _describe_system(report, collection, top)
        return Finding(f"{system} is the only system on {collection.name}.", key="decision")
    if better is None:
        text = (
            f"No system is shown to be better than the baseline {baseline} on {collection.name} "
            f"({pluralize(len(collection.queries), 'query')}). {_advise(comparisons)}"
        )
    else:
        text = _describe_gain(report, collection, better)
    if better is None or top != better.candidate:
        system = _describe_system(report, collection, top)
        text += f" The highest {collection.primary_measure} is that of {system}."
    return Finding(text, "plain" if better is None else "better", "decision")


def _advise(comparisons: Sequence[ComparisonResult]) -> str:
    """What to do where no system is shown to be better."""
    decided = sum(each.answer == "unjudged decide" for each in comparisons)
    if not decided:
        return "Keep the baseline."
    return (
        "Keep the baseline until more documents are judged: unjudged documents decide "
        f"{decided:,} of {pluralize(len(comparisons), 'comparison')}."
    )


def _describe_answer(report: Report, item: ComparisonResult) -> str:
    return format_answer(item.answer, report.min_gain, alpha=report.alpha)


def _describe_gain(report: Report, collection: Collection, item: ComparisonResult) -> str:
    """``a is better than the baseline b on c: nDCG@10 0.5 → 0.6, +20.0 %: … (+0.1 […], p …)``."""
    before, after = (
        format_number(collection.system(name).measures[item.measure].mean)
        for name in (item.baseline, item.candidate)
    )
    small = "" if item.answer == "better" else f", by less than {format_margin(report.min_gain)},"
    return (
        f"{item.candidate} is better than the baseline {item.baseline}{small} on "
        f"{collection.name}{collection.condition}: "
        f"{item.measure} {before} → {after}, {_describe_change(collection, item)} "
        f"({_describe_difference(report, item)})."
    )


def _describe_change(collection: Collection, item: ComparisonResult) -> str:
    """``+17.8 %: 25 queries better, 8 worse of 60``."""
    return format_change(
        item.difference,
        collection.system(item.baseline).measures[item.measure].mean,
        wins=item.wins,
        losses=item.losses,
        queries=item.wins + item.ties + item.losses,
    )


def _describe_difference(report: Report, item: ComparisonResult) -> str:
    """``+0.0100 [+0.0020, +0.0180], adjusted p .012``."""
    difference = format_difference(item.difference, item.low, item.high)
    return f"{difference}, adjusted p {format_adjusted_p(item, report.alpha)}"


def _describe_system(report: Report, collection: Collection, name: str) -> str:
    """``name (nDCG@10 0.6000, +1.7 %: …; +0.0100 [+0.0020, +0.0180], adjusted p .012; …)``."""
    primary = collection.primary_measure
    mean = format_number(collection.system(name).measures[primary].mean)
    item = collection.comparison(name, primary)
    if item is None:
        return f"{name} ({primary} {mean})"
    condition = collection.condition if item.answer in SHOWN else ""
    verdict = "" if item.answer == "better" else f"; {_describe_answer(report, item)}{condition}"
    difference = f"{_describe_difference(report, item)}{verdict}"
    return f"{name} ({primary} {mean}, {_describe_change(collection, item)}; {difference})"


def _power_finding(
    collection: Collection, comparisons: Sequence[ComparisonResult]
) -> Finding | None:
    """Whether there were too few queries to detect the observed difference."""
    if not comparisons or collection.best_improvement is not None:
        return None
    first = comparisons[0]
    detectable = first.min_detectable_difference or 0.0
    if first.answer not in NOT_SHOWN or detectable <= abs(first.difference):
        return None
    queries, groups = len(collection.queries), len(set(collection.groups))
    within = "" if groups == queries else f" in {pluralize(groups, 'group')}"
    return Finding(
        f"Too few queries for {first.candidate}: the minimum detectable difference (80 % power) "
        f"with {pluralize(queries, 'query')}{within} is "
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
