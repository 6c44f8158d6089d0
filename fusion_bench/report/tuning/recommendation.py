"""What to do with a tuning run: one recommendation from all that is known of it."""

from __future__ import annotations

from fusion_bench.report.judging.judge_line import JudgePlace, format_judge_line
from fusion_bench.report.tuning.look_texts import advise_next_look
from fusion_bench.report.tuning.pareto_findings import format_paired
from fusion_bench.report.tuning_records.pareto_front import ParetoPoint
from fusion_bench.report.tuning_records.tuning_report import TuningReport
from fusion_bench.util.formatting import format_number

#: By verdict.
ADVICE = {
    "unjudged decide": "keep the default: unjudged documents decide this comparison. Judge these "
    "first: {judge}",
    "too few tuning queries": "keep the default, and judge more queries to tune on, or tune fewer "
    "parameters.",
    "worse": "keep the default; the tuned parameters fit the tuning queries only.",
    "keep": "keep the default. These parameters hold no gain worth a change; try another run or "
    "another reranker.",
    "ship": "use the tuned parameters (tuned.yaml).",
    "groups decide": "keep the default until dataset.yaml says which queries are one group ("
    "groups: auto, none, or a file): so many depend on others that the gain may be theirs alone.",
}


def recommend(report: TuningReport, tuned: str = "tuned.yaml") -> str:
    """One thing to do now.

    Args:
        report: What was found.
        tuned: File of the tuned experiment.
    """
    if report.verdict == "unjudged decide":
        return ADVICE[report.verdict].format(judge=format_judge_line(JudgePlace(tuned)))
    match = report.untuned_match
    if report.verdict == "ship" and match is not None:
        return (
            f"keep the default, or use {match.name}, which needs no tuning. The tuned parameters "
            "are not shown to gain anything over it."
        )
    point = better_effort_point(report)
    if point is not None and report.front is not None and not report.front.is_contradicted:
        first = "use the tuned parameters" if report.verdict == "ship" else "keep the default"
        name = report.front.point_name(point)
        return f"{first}, and try {name} (front.yaml) if its cost is acceptable: it gains more."
    if report.verdict == "keep" and report.is_default_chosen:
        return (
            "keep the default. More trials, other parameters, or another run or reranker may gain "
            "more."
        )
    if report.verdict == "too few tuning queries":
        return f"{ADVICE[report.verdict]}{_advise_all_queries(report)}"
    if report.verdict != "too few queries":
        return ADVICE[report.verdict]
    nested = report.nested.difference if report.nested is not None else 0.0
    if report.held_out.difference <= 0 and nested <= 0:
        return "keep the default; no gain was measured that more queries could confirm."
    if report.needed is not None and report.needed.queries > report.held_out.queries:
        return f"keep the default, and judge more queries.{advise_next_look(report.look)}"
    return (
        "keep the default, unless the change costs nothing; the gain is probably about that small."
    )


def _advise_all_queries(report: TuningReport) -> str:
    """The other way to use few queries; empty where there are enough, or it was taken."""
    choice = report.split_choice
    if choice is None or choice.design != "share" or not choice.power:
        return ""
    return f" With {choice.queries} queries, 'held_out: all' tunes and tests on all of them."


def better_effort_point(report: TuningReport) -> ParetoPoint | None:
    """The best of the front, where its effort gains more than the tuned parameters.

    It was chosen on the tuning queries. The held-out ones must show it above the default (interval
    not adjusted for the other verdicts), and by more than the tuned parameters and the least gain.
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


def describe_better_effort(report: TuningReport) -> str:
    """That reranker or depth gain more than the tuned parameters; empty = they do not."""
    point, front = better_effort_point(report), report.front
    if point is None or front is None:
        return ""
    default = front.default_point
    what = "reranker" if point.reranker != default.reranker else "rerank depth"
    condition = "" if front.unjudged is None else front.unjudged.condition
    claim = f"The {what} gains more than the tuned parameters{condition}."
    if front.is_contradicted and front.unjudged is not None:
        claim = (
            f"Unjudged documents decide whether the {what} gains more than the tuned parameters "
            f"({front.unjudged.description})."
        )
    return (
        f"{claim} Held out, {front.point_name(point)} "
        f"reaches {format_number(point.held_out)}, the default ({front.point_name(default)}) "
        f"{format_number(default.held_out)} ({format_paired(point.over_default)}, not adjusted "
        f"for the other verdicts), the tuned parameters {format_number(report.held_out.tuned)}."
    )
