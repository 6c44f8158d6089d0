"""The one recommendation of a tuning run."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple, TypeAlias

from fusion_bench.report import tuning_records as records
from fusion_bench.report.tuning_texts import advise_next_look, shown_condition
from fusion_bench.util.formatting import format_loss_share, format_number

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
    """One thing to do now.

    Args:
        report: What was found.
        untuned: What nobody tuned, and is to be used; None = nothing.
    """
    if untuned is not None:
        return _recommend_untuned(report, untuned)
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


def _recommend_untuned(
    report: records.TuningReport, untuned: PreferredSystem
) -> records.Recommendation:
    is_list = len(untuned.config.get("runs", ())) == 1
    use = f"{untuned.name} alone" if is_list else untuned.name
    needs = "fusion" if is_list else "tuning"
    reason = f"; of {untuned.alternatives} such it is preferred, because {untuned.reason}"
    condition = shown_condition("ship", report.unjudged)
    return records.Recommendation(
        kind="use untuned",
        name=untuned.name,
        sentence=f"Use {use} instead of {report.system}: it does as well, and needs no {needs}. No "
        f"system is shown to be better on the held-out queries{condition}"
        f"{reason * bool(untuned.reason)}.{format_loss_share(untuned.name, untuned.loss_share)}",
        config=untuned.config,
        loss_share=untuned.loss_share,
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
