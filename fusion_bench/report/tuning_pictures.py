"""The pictures of a tuning run, what each shows and says; the page of a browser draws them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from fusion_bench.report import tuning_records as records
from fusion_bench.report.page import NextStep, Picture
from fusion_bench.report.tuning_texts import pareto_texts
from fusion_bench.util.formatting import format_interval, format_number, format_percent

#: The search had converged if its last gain came before this share of the trials.
CONVERGED = 0.5
SLICES_CAPTION = (
    "Every trial by one parameter at a time (square: default, star: tuned, darker: later). A flat "
    "top edge means that the parameter does not matter. A slope that ends at the border means that "
    "the range is too narrow. The axis omits the worst quarter of the trials where they are below "
    "the default."
)


def tuning_pictures(report: records.TuningReport) -> Iterator[Picture]:
    """Yield the pictures that show something, in the order of the page."""
    slices = SLICES_CAPTION if report.parameters else ""
    best = max(report.completed_trials, key=lambda trial: (trial.value or 0.0, -trial.number))
    default = next(trial.value for trial in report.trials if trial.origin == "default")
    position = [trial.number for trial in report.trials].index(best.number) + 1
    if position > CONVERGED * len(report.trials):
        advice = "The best trial came late; more trials may improve on it."
    else:
        advice = "The best trial came early; more trials are unlikely to improve much."
    history = (
        f"Each point is a trial. The default has {format_number(default)}; the best trial, "
        f"{best.number} of {len(report.trials):,}, has {format_number(best.value)}. {advice} The "
        "axis omits the worst quarter of the trials where they are below the default."
    )
    front = held_out = ""
    if report.front is not None:
        front = (
            "Better points are left and high: more quality for less effort. Where the line is "
            "flat, more effort buys nothing. The front was found on the tuning queries; the "
            "triangles are the same systems on held-out queries. "
            f"{' '.join(pareto_texts(report, report.front))}"
        )
    gain = report.held_out
    if any(side.wins + side.losses for side in (gain, report.tune)):
        interval = format_interval(gain.low, gain.high, signed=True)
        held_out = (
            f"Left, one bar a held-out query: {gain.wins:,} gain, {gain.losses:,} lose, "
            f"{gain.ties:,} tie. Right, the mean with its interval {interval}: above 0 the verdict "
            "is ship, below 0 worse, below the dotted line keep. The gray interval of the tuning "
            "queries is biased, because the parameters were chosen there."
        )
    pictures = (
        Picture("held-out.png", "Held-out differences", held_out),
        Picture("history.png", "Optimization history", history),
        Picture("slices.png", "Slices", slices),
        Picture("folds.png", "Spread over the folds", _describe_folds(report)),
        Picture("calibration.png", "Calibration of the rerank scores", _describe_fit(report)),
        Picture("front.png", "Quality against effort", front),
    )
    return (picture for picture in pictures if picture.caption)


#: What the pictures of a tuning run are drawn from.
DRAWN = (
    *("measure", "trials", "parameters", "importances", "folds", "choice", "tune", "held_out"),
    *("held_out_values", "settings", "front", "thresholds"),
)
#: What is long, and not drawn.
NOT_DRAWN: dict[str, Any] = {
    "choice": {"config"},
    "front": {"points": {"__all__": {"config", "params", "bounds"}}},
}


def tuning_html(
    report: records.TuningReport, tuned: str = "tuned.yaml", *, next_steps: Sequence[NextStep] = ()
) -> str:
    """The page of a tuning run, which draws its pictures from the record.

    Args:
        report: What it shows.
        tuned: File of the tuned experiment, as commands name it.
        next_steps: The commands that follow.
    """
    from fusion_bench.report import tuning_page
    from fusion_bench.report.html.pages import escape_texts
    from fusion_bench.report.html.render import render_html

    page = tuning_page.build_page(report, tuple(tuning_pictures(report)), tuned)
    drawn = report.model_dump(mode="json", include=set(DRAWN), exclude=NOT_DRAWN)
    data = {"kind": "tuning", "report": escape_texts(drawn)}
    return render_html(replace(page, next_steps=tuple(next_steps)), data)


def _describe_folds(report: records.TuningReport) -> str:
    if not report.folds:
        return ""
    caption = (
        "Values that the search chose without each fold, from the least (left) to the greatest of "
        "the range; choices stand in the order of their list. ×n marks n folds "
        "with the same value. Points close together mean that the queries agree. Points all over "
        "the range of a parameter that matters mean that it was fitted to the queries at hand."
    )
    spreads = report.fold_spreads
    if len(spreads) > 1:
        near, far = (extreme(spreads, key=lambda path: spreads[path]) for extreme in (min, max))
        caption += (
            f" Smallest spread: {near} ({format_percent(spreads[near])} of its range). Largest: "
            f"{far} ({format_percent(spreads[far])})."
        )
    return caption


def _describe_fit(report: records.TuningReport) -> str:
    """Describe the first list whose thresholds were fitted."""
    thresholds = next(iter(report.thresholds), None)
    if thresholds is None or not thresholds.calibration:
        return ""
    bins = thresholds.calibration
    total = sum(item.queries for item in bins)
    error = sum(item.queries * abs(item.score - item.share) for item in bins) / total
    first, last = bins[0], bins[-1]
    return (
        "Each point is a tenth of the held-out queries: its mean best score against the share of "
        f"queries with a relevant document in the top {thresholds.top}. On the diagonal a score is "
        f"a probability; the mean absolute error is {format_number(error)}. The share is "
        f"{format_percent(first.share)} in the lowest tenth (score {format_number(first.score)}) "
        f"and {format_percent(last.share)} in the highest ({format_number(last.score)}). Dashed: "
        "default thresholds; solid: tuned."
    )
