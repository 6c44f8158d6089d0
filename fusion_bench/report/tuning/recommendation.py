"""What to do with a tuning run: one recommendation from all that is known of it."""

from __future__ import annotations

from fusion_bench.report.page import Finding
from fusion_bench.report.tuning.pareto_findings import format_difference
from fusion_bench.report.tuning_records import ParetoPoint, TuningReport
from fusion_bench.util.formatting import format_number


def recommend(report: TuningReport) -> Finding:
    """One thing to do now."""
    return Finding(f"Recommendation: {_recommendation(report)}", key="recommendation")


def _recommendation(report: TuningReport) -> str:
    if unjudged_decide(report):
        return (
            "keep the default, and judge the documents that the tuned system brings up. Unjudged "
            "documents decide this comparison, so its verdict is void until then."
        )
    point = better_effort_point(report)
    if point is not None and report.front is not None:
        first = "use the tuned parameters" if report.verdict == "ship" else "keep the default"
        name = report.front.point_name(point)
        return f"{first}, and try {name} (front.yaml) if its cost is acceptable: it gains more."
    if report.verdict == "ship":
        return "use the tuned parameters (tuned.yaml)."
    if report.verdict == "worse":
        return "keep the default; the tuned parameters fit the tuning queries only."
    if report.verdict == "keep":
        return (
            "keep the default. These parameters hold no gain worth a change; try another run or "
            "another reranker."
        )
    if has_no_gain(report):
        return "keep the default; there is no gain that more queries could confirm."
    if report.needed is not None and report.needed > report.held_out.queries:
        return f"keep the default, and judge more queries: about {report.needed:,} held-out ones."
    return "keep the default, unless the change costs nothing."


def unjudged_decide(report: TuningReport) -> bool:
    """Whether the held-out difference has the other sign over judged documents alone."""
    judged = report.judged_only
    return judged is not None and judged * report.held_out.difference < 0


def has_no_gain(report: TuningReport) -> bool:
    """Whether neither held-out queries nor cross-validation show a gain."""
    nested = report.nested.difference if report.nested is not None else 0.0
    return report.held_out.difference <= 0 and nested <= 0


def better_effort_point(report: TuningReport) -> ParetoPoint | None:
    """The best of the front, where its effort gains more than the tuned parameters.

    It was chosen on the tuning queries. The held-out ones must show it above the default, and by
    more than the tuned parameters and the least gain.
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


def better_effort_finding(report: TuningReport) -> Finding | None:
    """That reranker or depth gain more than the tuned parameters; None = they do not."""
    point, front = better_effort_point(report), report.front
    if point is None or front is None:
        return None
    default = front.default_point
    what = "reranker" if point.reranker != default.reranker else "rerank depth"
    text = (
        f"The {what} gains more than the tuned parameters. Held out, {front.point_name(point)} "
        f"reaches {format_number(point.held_out)}, the default ({front.point_name(default)}) "
        f"{format_number(default.held_out)} ({format_difference(point.over_default)}), the tuned "
        f"parameters {format_number(report.held_out.tuned)}."
    )
    return Finding(text, key="better effort")
