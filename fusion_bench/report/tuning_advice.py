"""The one recommendation of a tuning run."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple, TypeAlias

from fusion_bench.report import tuning_records as records
from fusion_bench.report.tuning_texts import advise_next_look, shown_condition
from fusion_bench.util.formatting import format_loss_share

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
    point, front = find_better_effort(report), report.front
    is_open = kind in {"use tuned", "keep default"}
    if is_open and point is not None and front is not None and not front.is_contradicted:
        first = "Use the tuned parameters" if kind == "use tuned" else "Keep the default"
        name = front.point_name(point)
        sentence = f"{first}, and try {name} (front.yaml) if its cost is acceptable: it gains more."
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
    claim = "no system is shown to be better on the held-out queries"
    reason = f"; of {untuned.alternatives} such it is preferred, because {untuned.reason}"
    condition = shown_condition("ship", report.unjudged)
    return records.Recommendation(
        kind="use untuned",
        name=untuned.name,
        sentence=f"Use {untuned.name} instead of {report.system}: it needs no tuning, and "
        f"{claim}{condition}{reason * bool(untuned.reason)}."
        f"{format_loss_share(untuned.name, untuned.loss_share)}",
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
