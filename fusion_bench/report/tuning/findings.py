"""What a tuning run says: the verdict, the evidence for it, and warnings.

It can say "keep the default", and never calls a gain on the tuning queries a gain.
"""

from __future__ import annotations

from collections.abc import Iterator

from fusion_bench.report.page import Finding, Tone
from fusion_bench.report.tuning.format_values import format_gain, format_value
from fusion_bench.report.tuning.pareto_findings import pareto_texts
from fusion_bench.report.tuning.recommendation import (
    better_effort_finding,
    has_no_gain,
    recommend,
    unjudged_decide,
)
from fusion_bench.report.tuning_records import ParameterInfo, TuningReport
from fusion_bench.util.formatting import format_number, format_percent

#: A plateau at least this wide: the parameters hardly matter; below the other: a narrow peak.
WIDE_PLATEAU, NARROW_PLATEAU = 0.25, 0.01
#: Nearer to an end of its range than this share of it: the range may be too narrow.
END_DISTANCE = 0.02
TONES: dict[str, Tone] = {"ship": "better", "worse": "worse"}


def tuning_findings(report: TuningReport) -> tuple[Finding, ...]:
    """The verdict first, then the evidence, then warnings."""
    findings = (
        _verdict(report),
        recommend(report),
        better_effort_finding(report),
        _optimism(report),
        _nested_finding(report),
        _plateau_finding(report),
        _rule_finding(report),
        _per_type_finding(report),
        _pareto_finding(report),
        _threshold_finding(report),
        *_warnings(report),
    )
    return tuple(finding for finding in findings if finding is not None)


def _verdict(report: TuningReport) -> Finding:
    gain, least = report.held_out, format_number(report.min_gain)
    evidence = f"{gain.queries:,} held-out queries: {report.measure} "
    evidence += format_gain(gain, report.alpha)
    if report.verdict == "ship":
        text = f"Ship: the tuned system is better on {evidence}."
        if gain.difference < report.min_gain:
            text += f" The gain is smaller than the least gain, {least}."
    elif report.verdict == "worse":
        text = f"Worse: the tuned system is worse on {evidence}. Keep the default."
    elif report.verdict == "keep" and not (gain.wins or gain.losses):
        text = f"Keep the default: the tuned system equals it on {evidence}."
    elif report.verdict == "keep":
        text = f"Keep the default: any gain is below the least gain of {least} on {evidence}."
    else:
        text = (
            f"Too few queries: keep the default for now. On {evidence}. {_needed_queries(report)}"
        )
    return Finding(text, TONES.get(report.verdict, "plain"), "verdict")


def _needed_queries(report: TuningReport) -> str:
    """How many queries would suffice."""
    least = format_number(report.min_gain)
    if has_no_gain(report):
        where = "held-out queries" if report.nested is None else "held-out queries and folds"
        return f"There is no gain on {where}."
    if report.needed is None:
        return f"The number of queries needed to show a gain of {least} is unknown."
    if report.needed > report.held_out.queries:
        return (
            f"About {report.needed:,} held-out queries are needed to show a gain of {least} (80 % "
            "power)."
        )
    return (
        f"{report.needed:,} queries suffice to show a gain of {least} (80 % power), so the true "
        "gain is probably about that small. Decide by what the change costs."
    )


def _optimism(report: TuningReport) -> Finding:
    """How much of the gain on the tuning queries the held-out queries confirm."""
    lost, held_out = report.optimism, report.held_out.difference
    gains = (
        f"Gain on the tuning queries {format_number(report.tune.difference, signed=True)}, held "
        f"out {format_number(held_out, signed=True)}"
    )
    if lost is None:
        text = "The search found nothing better than the default on the tuning queries."
    elif held_out <= 0:
        text = f"{gains}: the whole gain was fitted to the tuning queries."
    elif lost > 0:
        text = f"{gains}: {format_percent(lost)} of the gain did not carry over."
    else:
        text = f"{gains}: the whole gain carried over."
    return Finding(text, key="optimism")


def _nested_finding(report: TuningReport) -> Finding | None:
    if report.nested is None:
        return None
    positive = sum(fold.unseen > 0 for fold in report.folds)
    text = (
        "Nested cross-validation estimates a gain of "
        f"{format_number(report.nested.difference, signed=True)} on unseen queries; it is positive "
        f"on {positive} of {len(report.folds)} folds."
    )
    return Finding(text, key="nested cross-validation")


def _plateau_finding(report: TuningReport) -> Finding | None:
    if report.plateau is None:
        return None
    share, sample = report.plateau.share, report.plateau.sample
    text = (
        f"Plateau: {format_percent(share)} of {sample:,} random parameter sets are within one "
        "standard error of the chosen one on the tuning queries."
    )
    if share >= WIDE_PLATEAU:
        text += " The exact values hardly matter."
    elif share < NARROW_PLATEAU:
        text += " It is a narrow peak; rely on the held-out queries."
    return Finding(text, key="plateau")


def _rule_finding(report: TuningReport) -> Finding | None:
    """Which rule chose a trial other than that of the highest mean."""
    if not report.completed_trials:
        return None
    best = max(report.completed_trials, key=lambda trial: trial.value or 0.0)
    highest = f"The highest mean is that of trial {best.number} ({format_number(best.value)})."
    rule, chosen = report.choice.rule, report.choice.trial
    if rule == "one_standard_error":
        text = (
            f"Trial {chosen} was chosen by the one-standard-error rule: it is the nearest to the "
            f"default among the trials within one standard error of the best. {highest}"
        )
    elif rule != "shrinkage" or chosen == best.number:
        return None
    elif chosen == report.completed_trials[0].number:
        text = f"After shrinkage (prior weight 10) no trial beats the default. {highest}"
    else:
        text = f"Trial {chosen} has the greatest gain after shrinkage (prior weight 10). {highest}"
    return Finding(text, key="selection rule")


def _per_type_finding(report: TuningReport) -> Finding | None:
    if report.per_type is None:
        return None
    claim = {
        "ship": "is better than one set of parameters for all",
        "worse": "is worse than one set of parameters for all; keep the single set",
        "keep": "gains too little over one set of parameters for all; keep the single set",
        "too few queries": "is not shown to beat one set of parameters for all; keep the latter",
    }[report.per_type.verdict]
    gain = format_gain(report.per_type.over_global, report.alpha)
    tone = TONES.get(report.per_type.verdict, "plain")
    return Finding(f"Tuning by query type {claim} (held out: {gain}).", tone, "per query type")


def _pareto_finding(report: TuningReport) -> Finding | None:
    if report.front is None:
        return None
    texts = " ".join(pareto_texts(report, report.front))
    return Finding(f"Quality against effort: {texts}", key="pareto front")


def _threshold_finding(report: TuningReport) -> Finding | None:
    thresholds = report.thresholds
    if thresholds is None:
        return None
    tuned, default = (
        f"{rule.upper:.4g} / {rule.lower:.4g}" for rule in (thresholds.tuned, thresholds.default)
    )
    claim = {
        "ship": "are better than",
        "worse": "are worse than",
        "keep": "gain too little over",
        "too few queries": "are not shown to beat",
    }[thresholds.verdict]
    gain = thresholds.gain
    text = (
        f"Thresholds {tuned} {claim} {default} at telling whether the top {thresholds.top} has a "
        f"relevant document: held-out utility {format_number(gain.tuned)} against "
        f"{format_number(gain.default)} ({format_gain(gain, report.alpha)}). The best single "
        f"threshold (min_score) is {thresholds.min_score.upper:.4g}."
    )
    return Finding(text, TONES.get(thresholds.verdict, "plain"), "thresholds")


def _warnings(report: TuningReport) -> Iterator[Finding]:
    if report.front is not None and report.front.interrupted:
        text = "The search for quality against effort was interrupted; its points may improve."
        yield Finding(text, "warning", "interrupted")
    elif report.interrupted:
        text = f"The search was interrupted after {len(report.trials):,} trials."
        yield Finding(text, "warning", "interrupted")
    if unjudged_decide(report):
        difference = format_number(report.judged_only, signed=True)
        text = (
            f"Over judged documents alone the held-out difference is {difference}, of the other "
            "sign. Unjudged documents decide, so do not rely on this verdict."
        )
        yield Finding(text, "warning", "unjudged")
    ends = [p for p in report.parameters if _is_at_range_end(p, report)]
    if ends:
        values = ", ".join(f"{p.path} {format_value(report.choice.params[p.path])}" for p in ends)
        text = f"Chosen at the end of the range: {values}. A wider range may be better."
        yield Finding(text, "warning", "range end")
    for item in report.by_type:
        if item.gain.high is not None and item.gain.high < 0:
            name = "queries without a type" if item.type is None else f"type {item.type}"
            gain = format_gain(item.gain, report.alpha)
            text = (
                f"The tuned system loses on {name}: {gain}, not adjusted for the number of types."
            )
            yield Finding(text, "warning", "losing type")


def _is_at_range_end(parameter: ParameterInfo, report: TuningReport) -> bool:
    """Whether a wider range could hold a better value.

    0 is a natural end: a weight or bonus of 0 switches off what it weighs. So are both ends of a
    share.
    """
    value = report.choice.params.get(parameter.path)
    low, high = parameter.low, parameter.high
    if parameter.kind == "choice" or low is None or high is None or low == high:
        return False
    if not isinstance(value, int | float) or value == 0 or (low, high) == (0, 1):
        return False
    margin = END_DISTANCE * (high - low)
    if parameter.ratio:  # the greatest is 1, wherever the range ends
        return value <= low + margin
    is_low = value <= low + margin and not parameter.log
    return value >= high - margin or is_low or value == low
