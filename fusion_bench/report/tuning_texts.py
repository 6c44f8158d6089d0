"""Values, looks, fronts, verdicts of a tuning run in words, with one recommendation."""

from __future__ import annotations

from collections.abc import Iterator

from fusion_bench.checks.unjudged import UnjudgedResult
from fusion_bench.config.parameters import DIGITS
from fusion_bench.report import tuning_records as records
from fusion_bench.report.answer_texts import name_verdict
from fusion_bench.stats.comparison import SHOWN
from fusion_bench.util.formatting import (
    format_change,
    format_difference,
    format_number,
    format_p_value,
    format_percent,
    pluralize,
)

#: So many choices are listed in a table; of more only the number.
MAX_CHOICES = 4


def format_value(value: records.Value) -> str:
    """A tuned number or choice; ``-`` where there is none."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.{DIGITS}g}" if isinstance(value, float) else str(value)


def format_choices(parameter: records.ParameterInfo) -> str:
    """``none, linear``: all choices."""
    return ", ".join(format_value(choice) for choice in parameter.choices)


def format_range(parameter: records.ParameterInfo) -> str:
    """``1 to 1000 log``, or the choices, or how many there are."""
    if parameter.kind == "choice":
        count = len(parameter.choices)
        return f"{count} choices" if count > MAX_CHOICES else format_choices(parameter)
    scale = " log" if parameter.log else ""
    return f"{format_value(parameter.low)} to {format_value(parameter.high)}{scale}"


def format_gain(gain: records.Gain, alpha: float) -> str:
    """``+0.0300 [+0.0100, +0.0500], p .012``."""
    difference = format_difference(gain.difference, gain.low, gain.high)
    return f"{difference}, p {format_p_value(gain.p, alpha=alpha)}"


def describe_look(look: records.Look | None) -> str:
    """Number, level and power of the look; empty where nothing was looked at."""
    if look is None:
        return ""
    level = format_level(look.level)
    if look.number is None:
        return f"Looks were not counted ({look.note}). The verdict is tested one-sided at {level}."
    again = ", asked again about the same numbers and queries" if look.is_repeated else ""
    place = "" if look.line is None else f" It is line {look.line} of {look.file}."
    place += f" The ledger is there, because {look.note}." if look.note else ""
    place += f" Looks are missing, so this number is too low: {look.lost}." if look.lost else ""
    return (
        f"This is look {look.number} at these held-out queries{again}. It is tested one-sided at "
        f"{level}, with {format_percent(look.power)} power where a single test has 80 %."
        f"{_describe_plan(look)}{_describe_next(look)}{place}"
    )


def advise_next_look(look: records.Look | None) -> str:
    """What judging more queries leads to; empty where looks are not counted."""
    if look is None or look.next_number is None or look.next_level is None:
        return ""
    return (
        f" The next look is look {look.next_number}, tested one-sided at "
        f"{format_level(look.next_level)}; judge all the queries that this takes before it."
    )


def format_level(level: float) -> str:
    """``.02``, ``.0025`` or ``1.2e-05``."""
    return f"{level:.2g}".removeprefix("0")


def _describe_plan(look: records.Look) -> str:
    if look.max_queries is None:
        return ""
    return f" It belongs to a plan of {look.max_queries:,} held-out queries (Lan–DeMets)."


def _describe_next(look: records.Look) -> str:
    if look.next_number is None or look.next_level is None:
        return " It is the last of its plan." if look.max_queries is not None else ""
    level, factor = format_level(look.next_level), look.next_query_factor or 1.0
    return (
        f" The next, look {look.next_number}, is tested at {level} and needs {factor:.1f} times "
        "the queries of a single test."
    )


#: How an axis is called in a sentence.
EFFORT_NAMES = {"candidates": "candidates", "cost": "cost", "seconds": "latency"}


def format_paired(difference: records.PairedDifference) -> str:
    """``-0.0020 [-0.0040, 0.0000]``."""
    return format_difference(difference.mean, difference.low, difference.high)


def pareto_texts(report: records.TuningReport, front: records.ParetoFront) -> Iterator[str]:
    """Sentences on the cheapest good point, and on the one that equals the default."""
    best = front.best
    cheapest = front.cheapest_reaching(best.value - report.min_gain)
    if cheapest is best:
        yield (
            f"The best of the front is {front.point_name(best)}: no point with less effort is "
            f"within {format_number(report.min_gain)} of it on the tuning queries."
        )
    else:
        yield (
            f"{front.point_name(cheapest).capitalize()} reaches, held out, "
            f"{format_paired(cheapest.over_best)} against the best of the front "
            f"({front.point_name(best)}) with {_effort_shares(front, cheapest, best)}."
        )
    default = front.default_point
    same = front.cheapest_reaching(default.value)
    if "default" not in same.roles and front.effort(same) < front.effort(default):
        yield (
            f"On the tuning queries the front reaches the default ({front.point_name(default)}) at "
            f"{front.point_name(same)} with {_effort_shares(front, same, default)}; held out "
            f"{format_paired(same.over_default)}."
        )


def _effort_shares(
    front: records.ParetoFront, point: records.ParetoPoint, reference: records.ParetoPoint
) -> str:
    """``20.0 % of its latency, 16.7 % of its cost``."""
    shares = []
    for axis in tuple(axis for axis in front.axes if axis != "candidates") or front.axes:
        part, total = (float(getattr(item, axis) or 0.0) for item in (point, reference))
        shares.append(
            f"{format_percent(part / total if total else 1.0)} of its {EFFORT_NAMES[axis]}"
        )
    return ", ".join(shares)


#: By verdict: what may be said of one system against another.
CLAIMS: dict[str, str] = {
    "ship": "is better than",
    "groups decide": "is better, if its queries are independent, than",
    "worse": "is worse than",
    "keep": "gains less than {least} over",
    "too few queries": "is not shown to differ from",
    "too few tuning queries": "was not chosen over",
    "unjudged decide": "may be better or worse, as unjudged documents decide, than",
}

#: The verdicts that claim something about the true difference.
CONDITIONAL = frozenset({"ship", "worse", "keep"})


def describe_verdict(report: records.TuningReport) -> str:
    """The first line: what untuned does as well, the verdict and the gain that it rests on."""
    if report.is_default_chosen:
        return _describe_default_choice(report)
    gain, match = report.held_out, report.untuned_match
    label = "Verdict"
    if report.verdict == "ship" and match is not None:
        advice = f"So {advise_untuned(match)}."
        label = f"{describe_floor(report)} {advice} Verdict against the default alone"
    claim = describe_claim(report.verdict, gain, report.min_gain)
    change = format_change(
        gain.difference, gain.default, wins=gain.wins, losses=gain.losses, queries=gain.queries
    )
    condition = shown_condition(report.verdict, report.unjudged)
    text = (
        f"{label}: {name_verdict(report.verdict)}. The tuned system {claim} the default "
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


def _describe_queries(report: records.TuningReport) -> str:
    """Which queries decide."""
    if report.is_cross_fitted:
        return f"all {report.held_out.queries:,} queries (cross-fitted)"
    return "held-out queries"


def describe_claim(verdict: str, gain: records.Gain, min_gain: float) -> str:
    """What a verdict allows to be said of one system against another."""
    least = format_number(min_gain)
    if verdict == "keep" and gain.low is not None and gain.low > 0:
        return f"is better, but by less than {least}, than"
    return CLAIMS[verdict].format(least=least)


def shown_condition(verdict: str, unjudged: UnjudgedResult | None) -> str:
    """What the claim of a verdict needs, to be put behind it; empty = nothing."""
    return unjudged.condition if unjudged is not None and verdict in CONDITIONAL else ""


def _describe_default_choice(report: records.TuningReport) -> str:
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


def describe_floor(report: records.TuningReport) -> str:
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
    unshown = "has no lower mean than, and is not shown to differ from,"
    claim = claims.get(row.answer, unshown if row.difference >= 0 else "is not shown to be below")
    chosen = f"the default {report.system}" if report.is_default_chosen else "the tuned system"
    if row.answer in SHOWN and report.unjudged is not None:
        chosen += report.unjudged.condition
    difference = format_difference(row.difference, row.low, row.high)
    return (
        f"{name} {claim} {chosen} on the same queries: {report.measure} "
        f"{format_number(row.mean)} ({difference})."
        f"{' The gain may be that of this value alone.' if row.kind == 'missing' else ''}"
    )


def advise_untuned(row: records.FloorRow) -> str:
    """What to do where something untuned does as well as the tuned system."""
    return f"use {row.name}" if row.kind == "missing" else f"keep the default, or use {row.name}"
