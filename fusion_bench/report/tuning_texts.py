"""Values, looks, fronts, verdicts of a tuning run in words, with one recommendation."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from fusion_bench.config.parameters import DIGITS
from fusion_bench.experiment.system_words import list_by_rank, shorten
from fusion_bench.measures.aliases import display_measure
from fusion_bench.report import tuning_records as records
from fusion_bench.report.answer_texts import name_verdict
from fusion_bench.stats.unjudged import UnjudgedResult
from fusion_bench.util.formatting import (
    format_change,
    format_coverage,
    format_difference,
    format_loss_share,
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
    place += NO_PLANS if look.max_queries is not None else ""
    place += f" The ledger is there, because {look.note}." if look.note else ""
    place += f" Looks are missing, so this number is too low: {look.lost}." if look.lost else ""
    following = ""
    if look.next_number is not None and look.next_level is not None:
        following = (
            f" The next, look {look.next_number}, is tested at {format_level(look.next_level)} and "
            f"needs about {look.next_query_factor or 1.0:.1f} times the queries of a single test."
        )
    return (
        f"This is look {look.number} at these held-out queries{again}. It is tested one-sided at "
        f"{level}, with about {format_percent(look.power)} power where a single test has 80 %."
        f"{following}{place}"
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


#: Of settings that declare a plan of looks.
NO_PLANS = " 'looks: {max_queries: …}' has no effect: the level of a look follows from its number."


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
    """The recommendation, where it is another than the verdict; the verdict and its gain."""
    if report.is_default_chosen:
        value = format_number(report.held_out.default)
        trials = pluralize(len(report.trials), "trial")
        label = f"Verdict against the default: {name_verdict(report.verdict)}."
        if report.advice.kind == "use untuned":
            label = f"{report.advice.sentence} {label}"
        if report.verdict != "too few tuning queries":
            return (
                f"{label} The search ({trials}) chose the default {report.system} itself on "
                f"{report.dataset}, so there is no gain to test: {display_measure(report.measure)} "
                f"stays {value} on held-out queries."
            )
        best = max(trial.value for trial in report.completed_trials if trial.value is not None)
        best_gain = format_number(best - report.tune.default, signed=True)
        return (
            f"{label} {report.better_trials:,} of {trials} looked better than the default "
            f"{report.system} on the {report.tune.queries:,} tuning queries of {report.dataset} "
            f"(the best by {best_gain} {display_measure(report.measure)}), too little for so few "
            "queries: the default was chosen, and no change is tested."
        )
    gain, advice = report.held_out, report.advice
    first = f"{advice.sentence} " if advice.kind == "use untuned" else ""
    claim = describe_claim(report.verdict, gain, report.min_gain)
    change = format_change(
        gain.difference, gain.default, wins=gain.wins, losses=gain.losses, queries=gain.queries
    )
    condition = shown_condition(report.verdict, report.unjudged)
    text = (
        f"{first}Verdict against the default: {name_verdict(report.verdict)}. The tuned system "
        f"{claim} the default {report.system} on held-out queries of {report.dataset}{condition}: "
        f"{display_measure(report.measure)} {format_number(gain.default)} → "
        f"{format_number(gain.tuned)}, {change} ({format_gain(gain, report.alpha)}). "
        f"The least gain is {format_number(report.min_gain)}."
    )
    if report.verdict in {"ship", "groups decide"}:
        text += format_loss_share("The tuned system", gain.loss_share)
    if report.verdict == "too few queries":
        needed = "an unknown number of" if report.needed is None else str(report.needed)
        if report.needed is not None and not report.needed.at_least:
            needed = f"about {needed}"
        text += f" Showing that gain takes {needed} held-out queries (80 % power)."
    return text


def describe_held_out(report: records.TuningReport) -> str:
    """Return the held-out values before and after, and why intervals have an unusual level."""
    means = {report.measure: (report.held_out.default, report.held_out.tuned)}
    values = ", ".join(
        f"{display_measure(measure)} {format_number(default)} → {format_number(tuned)}"
        for measure, (default, tuned) in (means | report.other_means).items()
    )
    coverage, reason = format_coverage(report.alpha), ""
    if report.alpha != report.settings.get("alpha", report.alpha):
        number = 1 if report.look is None else report.look.number or 1
        nth = "the first of several looks" if number == 1 else f"look {number}"
        reason = f" The interval is of {coverage}, because this is {nth} at these queries."
    return f"Held out: {values}.{reason}"


def describe_claim(verdict: str, gain: records.Gain, min_gain: float) -> str:
    """What a verdict allows to be said of one system against another."""
    least = format_number(min_gain)
    if verdict == "keep" and gain.low is not None and gain.low > 0:
        return f"is better, but by less than {least}, than"
    return CLAIMS[verdict].format(least=least)


def shown_condition(verdict: str, unjudged: UnjudgedResult | None) -> str:
    """What the claim of a verdict needs, to be put behind it; empty = nothing."""
    return unjudged.condition if unjudged is not None and verdict in CONDITIONAL else ""


#: So many changed parameters are listed; of more the rest is counted.
MAX_CHANGES: Final = 8
#: A condition inside a path: ``fusion(rrf).k``.
CONDITION: Final = re.compile(r"\([^)]*\)")
#: A path, with the class of queries or the stage that it is of.
SCOPE: Final = re.compile(
    r"(?:(?:by_query_type|by_intent|stages)\.([^.]+)\.|(?=weights_by_type\.([^.]+)))?(.+)"
)
#: The weight of a list.
WEIGHT: Final = re.compile(r"(?:weights_by_type\.[^.]+|fusion\.weights)\.(.+)")
#: An entry of a table by last rank.
ENTRY: Final = re.compile(r"(.+)\.(\d+)\.(?:value|ranks)")
#: Path → its words.
LABELS: Final = {
    "blend.depth": "rerank depth",
    "blend.method": "blend",
    "blend.rest": "retrieval share below",
    "blend.tiers": "retrieval share",
    "collapse.k": "collapse k",
    "collapse.keep": "chunks kept",
    "collapse.place": "collapse",
    "collapse.score": "document score",
}


def describe_changes(report: records.TuningReport) -> str:
    """Return what the tuned system has in place of the default's values; empty = nothing."""
    texts = (_describe_change(report, parameter) for parameter in report.parameters)
    changes = list(dict.fromkeys(filter(None, texts)))
    more = len(changes) - MAX_CHANGES
    return ", ".join(changes[:MAX_CHANGES]) + (f" and {more} more" if more > 0 else "")


def _describe_change(report: records.TuningReport, parameter: records.ParameterInfo) -> str:
    """One change; empty where the value is the default's, or the tuned system has none."""
    path = CONDITION.sub("", parameter.path)
    query_class, weights_class, place = SCOPE.findall(path)[0]
    if entry := ENTRY.fullmatch(place):
        names, index = path.rsplit(".", 2)[0].split("."), int(entry[2]) - 1
        (ranks, old), (new_ranks, new) = (
            _find_entry(config, names, index) for config in (report.default, report.choice.config)
        )
        label = f"{_name_place(entry[1])} at {ranks or new_ranks}"
        new = f"at {new_ranks} {new}" if "" != ranks != new_ranks != "" else new
    else:
        values = _scale_default(report, parameter), report.choice.params.get(parameter.path)
        old, new = ("" if value is None else shorten(value) for value in values)
        label = _name_place(place)
        if weight := WEIGHT.fullmatch(place):
            label, old, new = weight[1], old and f"×{old}", new and f"×{new}"
    if new in {"", old}:
        return ""
    scope = query_class or weights_class
    return f"{scope + ': ' if scope else ''}{label} {old or 'none'} → {new}"


def _name_place(place: str) -> str:
    words = LABELS.get(place, place.removeprefix("fusion.").removeprefix("blend."))
    return words.replace("_", " ").replace(".", " of ")


def _find_entry(config: Any, names: list[str], index: int) -> tuple[str, str]:  # noqa: ANN401 - JSON
    """The ranks and the value of an entry of a table; empty where there is none."""
    for name in names:
        config = (config or {}).get(name)
    table = {int(last): value for last, value in (config or {}).items()}
    entries = [(ranks, shorten(value)) for ranks, value in list_by_rank(table)]
    return entries[index] if index < len(entries) else ("", "")


def _scale_default(report: records.TuningReport, parameter: records.ParameterInfo) -> records.Value:
    """The default's value; weights that only count as a ratio are on the scale of the tuned."""
    if not parameter.ratio or not isinstance(parameter.default, int | float):
        return parameter.default
    group = parameter.path.rpartition(".")[0]
    same = [each for each in report.parameters if each.path.rpartition(".")[0] == group]
    tuned = [report.choice.params.get(each.path) for each in same]
    greatest = max((v for v in tuned if isinstance(v, int | float)), default=1)
    defaults = [each.default for each in same]
    of_default = max((v for v in defaults if isinstance(v, int | float)), default=1)
    return parameter.default * greatest / of_default if of_default else parameter.default


Kind: TypeAlias = Literal[
    "use tuned", "use untuned", "keep default", "judge first", "declare groups"
]


class PreferredSystem(NamedTuple):
    """What nobody tuned, and is to be used.

    Attributes:
        name: Its name.
        config: Resolved.
        reason: Why it is preferred to others of the best group; empty = there is no other.
        alternatives: Untuned systems of the best group, itself included.
        loss_share: The share of draws in which it is worse than the default.
    """

    name: str
    config: dict[str, Any]
    reason: str = ""
    alternatives: int = 1
    loss_share: float | None = None


#: By verdict, where nothing untuned is preferred: the kind of the recommendation, and its sentence.
ADVICE: dict[str, tuple[Kind, str]] = {
    "unjudged decide": (
        "judge first",
        "Keep the default until more documents are judged: unjudged documents decide this "
        "comparison.",
    ),
    "too few tuning queries": (
        "keep default",
        "Keep the default, and judge more queries to tune on, or tune fewer parameters.",
    ),
    "worse": (
        "keep default",
        "Keep the default; the tuned parameters fit the tuning queries only.",
    ),
    "keep": (
        "keep default",
        "Keep the default. These parameters hold no gain worth a change; try another run or "
        "another reranker.",
    ),
    "ship": ("use tuned", "Use the tuned parameters (tuned.yaml)."),
    "groups decide": (
        "declare groups",
        "Keep the default until dataset.yaml says which queries are one group (groups: auto, or a "
        "file): so many may depend on others that the gain may be theirs alone.",
    ),
}


def recommend(
    report: records.TuningReport, untuned: PreferredSystem | None = None
) -> records.Recommendation:
    """Recommend one thing to do now.

    Args:
        report: What was found.
        untuned: What nobody tuned, and is to be used; None = nothing.
    """
    if untuned is not None:
        is_list = len(untuned.config.get("runs", ())) == 1
        use = f"{untuned.name} alone" if is_list else untuned.name
        needs = "fusion" if is_list else "tuning"
        reason = f"; of {untuned.alternatives} such it is preferred, because {untuned.reason}"
        condition = shown_condition("ship", report.unjudged)
        loss = format_loss_share(untuned.name, untuned.loss_share)
        return records.Recommendation(
            kind="use untuned",
            name=untuned.name,
            sentence=f"Use {use} instead of {report.system}: it does as well, and needs no {needs}."
            f" No system is shown to be better on the held-out queries{condition}"
            f"{reason * bool(untuned.reason)}.{loss}",
            config=untuned.config,
            loss_share=untuned.loss_share,
        )
    kind, sentence = ADVICE.get(report.verdict, ("keep default", ""))
    if (name := advised_effort(report)) is not None:
        effort = f"{name} (front.yaml) if its cost is acceptable"
        sentence = f"Use the tuned parameters, and try {effort}: it gains more."
        if kind != "use tuned":
            sentence = f"Use {effort}: it is better than the default, and tuning gains less."
    elif is_better_by_less(report):
        sentence = (
            "Use the tuned parameters (tuned.yaml) only if the change costs nothing: they gain "
            f"less than {format_number(report.min_gain)}."
        )
    elif report.verdict == "keep" and report.is_default_chosen:
        sentence = (
            "Keep the default. More trials, other parameters, or another run or reranker may gain "
            "more."
        )
    elif report.verdict == "too few queries":
        sentence = _advise_more_queries(report)
    is_tuned = kind == "use tuned"
    return records.Recommendation(
        kind=kind,
        name=f"{report.system} tuned" if is_tuned else report.system,
        sentence=sentence,
        config=report.choice.config if is_tuned else report.default,
        loss_share=report.held_out.loss_share if is_tuned else None,
    )


def _advise_more_queries(report: records.TuningReport) -> str:
    nested = report.nested.difference if report.nested is not None else 0.0
    if report.held_out.difference <= 0 and nested <= 0:
        return "Keep the default; no gain was measured that more queries could confirm."
    if report.needed is not None and report.needed.queries > report.held_out.queries:
        return f"Keep the default, and judge more queries.{advise_next_look(report.look)}"
    return (
        "Keep the default, unless the change costs nothing; the gain is probably about that small."
    )


def is_better_by_less(report: records.TuningReport) -> bool:
    """Return whether the tuned system is shown to be better, but by less than the least gain."""
    return report.verdict == "keep" and (report.held_out.low or 0) > 0


def advised_effort(report: records.TuningReport) -> str | None:
    """Return the reranker or depth that is shown to gain more than tuning; None = none is."""
    point, front = find_better_effort(report), report.front
    is_open = ADVICE.get(report.verdict, ("keep default",))[0] in {"use tuned", "keep default"}
    if not is_open or point is None or front is None or front.is_contradicted:
        return None
    return front.point_name(point)


def find_better_effort(report: records.TuningReport) -> records.ParetoPoint | None:
    """The best of the front, where its effort gains more than the tuned parameters.

    It was chosen on the tuning queries. The held-out ones must show it above the default, among
    all points, and by more than the tuned parameters and the least gain.
    """
    if report.front is None:
        return None
    best, default = report.front.best, report.front.default_point
    chosen = next((p for p in report.front.points if "chosen" in p.roles), default)
    if best.reranker_and_depth in {default.reranker_and_depth, chosen.reranker_and_depth}:
        return None
    difference = best.over_default
    is_enough = difference.mean > max(report.held_out.difference, 0.0) + report.min_gain
    is_shown = difference.low is not None and difference.low > 0
    return best if is_enough and is_shown else None
