"""Which pictures a tuning run gets, and beside each what it means, in words."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from matplotlib.figure import Figure as Drawing

from fusion_bench.report.page import Figure
from fusion_bench.report.tuning import outcome_plots, plots
from fusion_bench.report.tuning import pareto_plot as front_plot
from fusion_bench.report.tuning import pareto_table as fronts
from fusion_bench.report.tuning.contours import contours
from fusion_bench.report.tuning.tables import apart, lost_without
from fusion_bench.report.tuning.tuning_records import Front, ThresholdReport, TuningReport
from fusion_bench.util.formatting import escape_control_chars, format_interval, format_number
from fusion_bench.util.formatting import format_percent as percent

__all__ = ["tuning_figures"]

#: The search had settled if its last gain came before this share of the trials.
SETTLED = 0.5
#: Of pictures whose axis does not begin at 0.
CUT_OFF = (
    "The lower part of the axis is cut off: of the worst quarter of the trials, what lies below "
    "the default is not shown."
)


def tuning_figures(tuning: TuningReport) -> Iterator[Figure]:
    """Every figure that has something to show, the most important first."""
    for name, title, caption, drawing in _figures(tuning):
        yield Figure(f"{name}.png", title, caption, partial(_drawing, drawing))


def _drawing(drawing: Drawing) -> Drawing:
    return drawing


def _figures(tuning: TuningReport) -> Iterator[tuple[str, str, str, Drawing]]:
    yield "held-out", "Held-out differences", _held_out(tuning), outcome_plots.held_out(tuning)
    yield "history", "Optimisation history", _history(tuning), plots.history(tuning)
    if tuning.importances:
        meaning = _importance(tuning)
        yield "importance", "Parameter importance", meaning, plots.importance(tuning)
    if tuning.parameters:
        yield "slices", "Slices", _slices(), plots.slices(tuning)
    pairs = contours(tuning)
    if pairs is not None:
        yield "contours", "Contours", _contours(), pairs
    if tuning.folds:
        yield "folds", "Spread over the folds", _folds(tuning), outcome_plots.fold_spread(tuning)
    if tuning.thresholds is not None and tuning.thresholds.calibration:
        meaning = _calibration(tuning.thresholds)
        figure = outcome_plots.calibration(tuning.thresholds)
        yield "calibration", "Calibration of the rerank scores", meaning, figure
    if tuning.front is not None:
        meaning = _front(tuning, tuning.front)
        yield "front", "Quality against effort", meaning, front_plot.draw(tuning, tuning.front)


def _held_out(tuning: TuningReport) -> str:
    found = tuning.held_out
    return (
        f"Left, one bar a held-out query: {found.wins:,} gain, {found.losses:,} lose, "
        f"{found.ties:,} stay. Right, the mean with its interval "
        f"{format_interval(found.low, found.high, signed=True)}: above 0 it ships, below 0 it is "
        "worse, "
        "below the dotted line it is not worth a change. The grey tuning interval is no evidence: "
        "the numbers were chosen there."
    )


def _history(tuning: TuningReport) -> str:
    best = max(tuning.done, key=lambda trial: (trial.value or 0.0, -trial.number))
    default = next(trial.value for trial in tuning.trials if trial.origin == "default")
    done = [trial.number for trial in tuning.trials].index(best.number) + 1
    late = done > SETTLED * len(tuning.trials)
    end = (
        "It came late, so more trials may find more."
        if late
        else "Much of the search came after it, so more trials are unlikely to find much."
    )
    return (
        f"Each point is a setting; the default is at {format_number(default)}, the best "
        f"({format_number(best.value)}) was trial {best.number} of {len(tuning.trials):,}. {end} "
        f"{CUT_OFF}"
    )


def _importance(tuning: TuningReport) -> str:
    first = tuning.importances[0]
    said = (
        f"Left: {escape_control_chars(first.path)} has {percent(first.share)} of the importance "
        "(PED-ANOVA): in "
        "it the best tenth of the trials differs most from the rest. That is about where this "
        "search went, and a choice that it soon gave up gets little."
    )
    lost = {one.path: lost_without(tuning, one) for one in tuning.parameters}
    known = {path: worth for path, worth in lost.items() if worth is not None}
    if not known:
        return said
    most = max(known, key=lambda path: known[path])
    return (
        f"{said} Right: what is lost on the tuning queries when one number of the tuned system "
        f"goes back to its default; the most with {escape_control_chars(most)} "
        f"({format_number(known[most])} "
        f"{tuning.measure}). What has hardly any on either side can stay at its default."
    )


def _slices() -> str:
    return (
        "Every trial by one parameter at a time (square: default, star: chosen, darker: later). A "
        "flat top edge means that the number does not matter; a slope that ends at the border "
        f"means that the range is too narrow. {CUT_OFF}"
    )


def _contours() -> str:
    return (
        "Two parameters at a time (square: default, star: chosen, dots: trials): the darker, the "
        "better were the settings around. A ridge that lies askew means that the two only make "
        "sense together: changing one alone undoes the other. Palest: hardly anybody looked there, "
        "or nothing good was found."
    )


def _folds(tuning: TuningReport) -> str:
    spread = {one.path: apart(tuning, one) for one in tuning.parameters}
    known = {path: share for path, share in spread.items() if share is not None}
    ends = ""
    if len(known) > 1:
        near, far = min(known, key=lambda p: known[p]), max(known, key=lambda p: known[p])
        ends = (
            f" They agree most on {escape_control_chars(near)} ({percent(known[near])} of its "
            "range apart) and "
            f"least on {escape_control_chars(far)} ({percent(known[far])})."
        )
    return (
        "Where each fold's search put each number, from the least (left) to the greatest value of "
        "its range, and which choice it made; a number beside a point counts the folds that it "
        "stands for. Points that lie together say that the queries agree on it; points all over "
        "the range, where the number matters at all, say that it is fitted to whichever queries "
        f"were there.{ends}"
    )


def _calibration(found: ThresholdReport) -> str:
    bins = found.calibration
    total = sum(one.queries for one in bins)
    off = sum(one.queries * abs(one.score - one.share) for one in bins) / total
    first, last = bins[0], bins[-1]
    return (
        "Each point is a tenth of the held-out queries: its mean best score against the share that "
        f"has a relevant document in the top {found.top}. On the diagonal a score is a "
        f"probability; it is {format_number(off)} off on average. The lowest tenth "
        f"({format_number(first.score)}) has one in {percent(first.share)} of its queries, the "
        "highest "
        f"({format_number(last.score)}) in "
        f"{percent(last.share)}. Dashed: the default's thresholds; solid: the tuned ones."
    )


def _front(tuning: TuningReport, front: Front) -> str:
    found = " ".join(fronts.findings(tuning, front))
    return (
        "Left and high is good: quality for little effort; where the line is flat, more effort "
        "buys nothing. It was found on the tuning queries; the triangles below or above it say "
        f"what is left of it on the held-out ones. {found}"
    )
