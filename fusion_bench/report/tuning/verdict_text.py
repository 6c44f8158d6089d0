"""The verdict of a tuning run in words, and what does as well without tuning."""

from __future__ import annotations

from fusion_bench.evaluation.report_records.results.unjudged import UnjudgedResult
from fusion_bench.report.tuning.format_values import format_gain
from fusion_bench.report.tuning_records.trials import Gain
from fusion_bench.report.tuning_records.tuning_report import TuningReport
from fusion_bench.stats.answers import SHOWN
from fusion_bench.util.formatting import (
    format_change,
    format_difference,
    format_number,
    pluralize,
)

#: By verdict: what may be said of one system against another.
CLAIMS: dict[str, str] = {
    "ship": "is better than",
    "groups decide": "is better, if its queries are independent, than",
    "worse": "is worse than",
    "keep": "gains less than {least} over",
    "too few queries": "is not shown to differ from",
    "too few tuning queries": "was not chosen over",
    "unjudged decide": "is not compared, because unjudged documents decide, with",
}

#: The verdicts that claim something about the true difference.
CONDITIONAL = frozenset({"ship", "worse", "keep"})


def describe_verdict(report: TuningReport) -> str:
    """The first line: what untuned does as well, the verdict and the gain that it rests on."""
    if report.is_default_chosen:
        return _describe_default_choice(report)
    gain, match = report.held_out, report.untuned_match
    label = "Verdict"
    if report.verdict == "ship" and match is not None:
        advice = f"So keep the default, or use {match.name}."
        label = f"{describe_floor(report)} {advice} Verdict against the default alone"
    claim = describe_claim(report.verdict, gain, report.min_gain)
    change = format_change(
        gain.difference, gain.default, wins=gain.wins, losses=gain.losses, queries=gain.queries
    )
    condition = shown_condition(report.verdict, report.unjudged)
    text = (
        f"{label}: {report.verdict}. The tuned system {claim} the default "
        f"{report.system} on {_describe_queries(report)} of {report.dataset}{condition}: "
        f"{report.measure} {format_number(gain.default)} → {format_number(gain.tuned)}, {change} "
        f"({format_gain(gain, report.alpha)}). The least gain is {format_number(report.min_gain)}."
    )
    if report.shrunken is not None:
        shrunken = format_number(report.shrunken, signed=True)
        text += f" Shrunken estimate of the gain: {shrunken}."
    if report.verdict == "too few queries":
        needed = "an unknown number of" if report.needed is None else str(report.needed)
        kind = "" if report.is_cross_fitted else "held-out "
        text += f" Showing that gain takes {needed} {kind}queries (80 % power)."
    return text


def _describe_queries(report: TuningReport) -> str:
    """Which queries decide."""
    if report.is_cross_fitted:
        return f"all {report.held_out.queries:,} queries (cross-fitted)"
    return "held-out queries"


def describe_claim(verdict: str, gain: Gain, min_gain: float) -> str:
    """What a verdict allows to be said of one system against another."""
    least = format_number(min_gain)
    if verdict == "keep" and gain.low is not None and gain.low > 0:
        return f"is better, but by less than {least}, than"
    return CLAIMS[verdict].format(least=least)


def shown_condition(verdict: str, unjudged: UnjudgedResult | None) -> str:
    """What the claim of a verdict needs, to be put behind it; empty = nothing."""
    return unjudged.condition if unjudged is not None and verdict in CONDITIONAL else ""


def _describe_default_choice(report: TuningReport) -> str:
    value = format_number(report.held_out.default)
    trials = pluralize(len(report.trials), "trial")
    if report.verdict != "too few tuning queries":
        return (
            f"Verdict: {report.verdict}. The search ({trials}) chose the default {report.system} "
            f"itself on {report.dataset}, so there is no gain to test: {report.measure} stays "
            f"{value} on {_describe_queries(report)}."
        )
    best = max(trial.value for trial in report.completed_trials if trial.value is not None)
    gain = format_number(best - report.tune.default, signed=True)
    return (
        f"Verdict: {report.verdict}. {report.better_trials:,} of {trials} looked better than the "
        f"default {report.system} on the {report.tune.queries:,} tuning queries of "
        f"{report.dataset} (the best by {gain} {report.measure}), too little for so few queries: "
        "the default was chosen, and no change is tested."
    )


def describe_floor(report: TuningReport) -> str:
    """What, untuned, does as well as the tuned system on the held-out queries; empty = nothing."""
    row = report.untuned_match
    if row is None:
        return ""
    name = f"The single source {row.name}" if row.kind == "source" else f"{row.name}, not tuned,"
    least = format_number(report.min_gain)
    claims = {
        "better": "is better than",
        "better, by less than min_gain": f"is better, by less than {least}, than",
        "equivalent": f"is equivalent within {least} to",
        "identical": "has the same values as",
    }
    claim = claims.get(row.answer, "has no lower mean than, and is not shown to differ from,")
    chosen = f"the default {report.system}" if report.is_default_chosen else "the tuned system"
    if row.answer in SHOWN and report.unjudged is not None:
        chosen += report.unjudged.condition
    difference = format_difference(row.difference, row.low, row.high)
    return (
        f"{name} {claim} {chosen} on the same queries: {report.measure} "
        f"{format_number(row.mean)} ({difference})."
    )
