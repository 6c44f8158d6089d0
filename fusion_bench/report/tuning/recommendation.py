"""What to do with a tuning run: one piece of advice, drawn from all that is known of it."""

from __future__ import annotations

from fusion_bench.report.tuning import pareto_table as fronts
from fusion_bench.report.tuning.tuning_records import FrontPoint, TuningReport
from fusion_bench.util.formatting import format_interval, format_number

__all__ = ["advice", "biggest_lever", "lever", "nothing_found", "unjudged_decide"]


def advice(tuning: TuningReport) -> str:
    """One thing to do, or to leave, now."""
    return f"What to do now: {_advice(tuning)}"


def _advice(tuning: TuningReport) -> str:
    if unjudged_decide(tuning):
        return (
            "keep the default, and judge the documents that the tuned system brings up before "
            "anything else: unjudged ones decide this comparison, so its verdict is worth nothing "
            "until then."
        )
    point = biggest_lever(tuning)
    if point is not None and tuning.front is not None:
        at = f"try {fronts.named(tuning.front, point)} (front.yaml), if its cost can be borne"
        also = "take the tuned numbers, and" if tuning.verdict == "ship" else "keep the default and"
        return f"{also} {at}: that is worth more here than the numbers that were tuned."
    if tuning.verdict == "ship":
        return "put the tuned numbers to use (tuned.yaml)."
    if tuning.verdict == "worse":
        return "keep the default; these numbers were fitted to the tuning queries."
    if tuning.verdict == "keep":
        return (
            "keep the default, and look for more elsewhere (another run, another reranker): these "
            "numbers hold no gain worth a change."
        )
    if nothing_found(tuning):
        return "keep the default: nothing was found so far that more queries could confirm."
    if tuning.needed is not None and tuning.needed > tuning.held_out.queries:
        return f"keep the default, and judge more queries: {tuning.needed:,} held out would tell."
    return "keep the default, unless the change costs nothing."


def unjudged_decide(tuning: TuningReport) -> bool:
    """Whether the held-out difference has the other sign over judged documents alone."""
    judged = tuning.judged_only
    return judged is not None and judged * tuning.held_out.difference < 0


def nothing_found(tuning: TuningReport) -> bool:
    """Whether no unseen query says that there is a gain: neither held out nor across folds."""
    crossed = tuning.nested.difference if tuning.nested is not None else 0.0
    return tuning.held_out.difference <= 0 and crossed <= 0


def biggest_lever(tuning: TuningReport) -> FrontPoint | None:
    """The best of the front, where its effort is worth more than what was tuned.

    It was chosen on the tuning queries; the held-out ones must show it above the default, and by
    more than the tuned numbers and the least gain.
    """
    if tuning.front is None:
        return None
    top = fronts.best(tuning.front)
    default = next(point for point in tuning.front.points if "default" in point.roles)
    chosen = next((p for p in tuning.front.points if "chosen" in p.roles), default)
    if top.place in {default.place, chosen.place}:
        return None
    found = top.over_default
    enough = found.mean > max(tuning.held_out.difference, 0.0) + tuning.min_gain
    return top if enough and found.low is not None and found.low > 0 else None


def lever(tuning: TuningReport) -> str | None:
    """The biggest lever in words, where it is not what was tuned; None = it is, or not known."""
    point, front = biggest_lever(tuning), tuning.front
    if point is None or front is None:
        return None
    default = next(one for one in front.points if "default" in one.roles)
    what = "reranker" if point.reranker != default.reranker else "rerank depth"
    found = point.over_default
    return (
        f"The biggest lever here is the {what}, and not what was tuned: "
        f"{fronts.named(front, point)} reaches {format_number(point.held_out)} held out, the "
        "default "
        f"({fronts.named(front, default)}) {format_number(default.held_out)} "
        f"({format_number(found.mean, signed=True)} "
        f"{format_interval(found.low, found.high, signed=True)}), the "
        f"tuned numbers {format_number(tuning.held_out.tuned)}."
    )
