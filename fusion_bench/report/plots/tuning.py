"""Plots of a tuning run: trials, parameters, folds, held-out queries, Pareto front."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Drawing
from matplotlib.ticker import MaxNLocator, NullLocator, StrMethodFormatter, SymmetricalLogLocator

import fusion_bench.report.plots._base as base
from fusion_bench.data.ordering import FloatArray
from fusion_bench.report import tuning_records as records
from fusion_bench.report.answer_texts import name_verdict
from fusion_bench.report.page import Figure
from fusion_bench.report.tuning_pictures import tuning_pictures
from fusion_bench.report.tuning_texts import format_range, format_value
from fusion_bench.util.formatting import format_number, is_known

#: By origin of a trial, and for the chosen one: marker and color.
MARKS = {
    "default": ("s", base.INK),
    "seed": ("D", base.ORANGE),
    "sampler": (".", base.GRAY),
    "chosen": ("*", base.GREEN),
}


def format_tuning_title(report: records.TuningReport, what: str) -> str:
    """What a plot shows, of which system on which dataset."""
    system, dataset = (base.plot_text(name, 30) for name in (report.system, report.dataset))
    return f"{what}: {system} on {dataset}"


def marked_trials(report: records.TuningReport) -> dict[str, records.TrialRecord]:
    """The default trial and the chosen one, by the key of their mark."""
    default = next(trial for trial in report.trials if trial.origin == "default")
    chosen = next(trial for trial in report.completed_trials if trial.number == report.choice.trial)
    return {"default": default, "chosen": chosen}


def repeat_values(trials: Sequence[records.TrialRecord]) -> FloatArray:
    """Shape (T,): the value of each trial; NaN = could not be computed."""
    return np.array([trial.value for trial in trials], dtype=np.float64)


def axis_positions(
    parameter: records.ParameterInfo, trials: Sequence[records.TrialRecord]
) -> FloatArray:
    """Shape (T,): numbers as they are, choices by their position in the list."""
    values = [trial.params[parameter.path] for trial in trials]
    if parameter.kind == "choice":
        return np.array([float(parameter.choices.index(value)) for value in values])
    return np.array(values, dtype=np.float64)


def unit_positions(
    parameter: records.ParameterInfo, values: Sequence[records.Value]
) -> list[float]:
    """Positions in the parameter's range, 0 … 1; without None and choices that are not offered."""
    choices = parameter.choices if parameter.kind == "choice" else values
    present = [value for value in values if value is not None and value in choices]
    return [parameter.range.unit_position(value) for value in present]


def limit_to_best(axes: Axes, report: records.TuningReport) -> None:
    """Show the better three quarters and the default: bad trials would flatten the rest."""
    values = repeat_values(report.completed_trials)
    default = marked_trials(report)["default"].value
    bottom = min(float(np.quantile(values, 0.25)), *([] if default is None else [default]))
    height = max(float(values.max()) - bottom, 1e-6)
    axes.set_ylim(bottom - 0.08 * height, float(values.max()) + 0.08 * height)


def draw_history(report: records.TuningReport) -> Drawing:
    """Value of every trial in the order of the search, and the best so far."""
    with base.open_drawing(3.4, legend_columns=5) as (drawing, [axes]):
        for origin, (mark, color) in MARKS.items():
            trials = [trial for trial in report.completed_trials if trial.origin == origin]
            if trials:
                numbers = [trial.number for trial in trials]
                size = 5 if mark == "." else 7
                axes.plot(numbers, repeat_values(trials), mark, color=color, ms=size, label=origin)
        best = np.maximum.accumulate(repeat_values(report.completed_trials))
        numbers = [trial.number for trial in report.completed_trials]
        axes.step(numbers, best, where="post", color=base.BLUE, lw=1.4, label="best so far")
        limit_to_best(axes, report)
        axes.set(xlabel="trial", ylabel=f"{base.plot_text(report.measure)}, tuning queries")
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        drawing.suptitle(format_tuning_title(report, "Optimization history"))
    return drawing


#: Parameters in one figure; the most important first.
MAX_PANELS = 9


def draw_slices(report: records.TuningReport) -> Drawing:
    """Value against each parameter alone; the default and the chosen trial are marked."""
    shares = {importance.path: importance.share for importance in report.importances}
    parameters = sorted(report.parameters, key=lambda parameter: -shares.get(parameter.path, 0.0))[
        :MAX_PANELS
    ]
    with base.open_drawing(2.3, len(parameters), margin=0.6, sharey=True) as (drawing, panels):
        for axes, parameter in zip(panels, parameters, strict=True):
            trials = [trial for trial in report.completed_trials if parameter.path in trial.params]
            colors = [trial.number for trial in trials]
            x, y = axis_positions(parameter, trials), repeat_values(trials)
            axes.scatter(
                x, y, s=9, c=colors, cmap="Blues", vmin=-len(trials) / 2, label="darker = later"
            )
            for key, trial in marked_trials(report).items():
                if parameter.path in trial.params:
                    mark, color = MARKS[key]
                    x, y = axis_positions(parameter, [trial]), repeat_values([trial])
                    axes.plot(x, y, mark, color=color, ms=7, label=key)
            if parameter.kind == "choice":
                names = [base.plot_text(format_value(choice), 24) for choice in parameter.choices]
                axes.set_xticks(range(len(names)), names, fontsize=7, rotation=30, ha="right")
                axes.set_xlim(-0.5, len(names) - 0.5)
            elif parameter.log:
                axes.set_xscale("log")
            else:
                axes.xaxis.set_major_locator(MaxNLocator(nbins=5))
            axes.set_title(base.plot_text(parameter.path, 32))
        limit_to_best(panels[0], report)
        drawing.supylabel(f"{base.plot_text(report.measure)}, tuning queries")
        drawing.suptitle(format_tuning_title(report, "Slices"))
    return drawing


#: Points nearer to each other than this share of the range are drawn as one, and counted.
MERGE_DISTANCE = 0.01


def draw_folds(report: records.TuningReport) -> Drawing:
    """One row a parameter: the value of each fold, the default and the tuned value."""
    parameters = report.parameters[::-1]
    with base.open_drawing(1.3 + 0.36 * len(parameters)) as (drawing, [axes]):
        for y, parameter in enumerate(parameters):
            positions = unit_positions(
                parameter, [fold.params.get(parameter.path) for fold in report.folds]
            )
            counts = Counter(round(x / MERGE_DISTANCE) * MERGE_DISTANCE for x in positions)
            label = "without one fold (×: so many folds)"
            axes.plot(
                list(counts), [y] * len(counts), "o", color=base.BLUE, ms=6, alpha=0.5, label=label
            )
            for x, count in counts.items():
                if count > 1:
                    axes.text(x, y + 0.15, f"×{count}", ha="center", va="bottom", fontsize=7)
            chosen = report.choice.params.get(parameter.path)
            for key, value in (("default", parameter.default), ("chosen", chosen)):
                mark, color = MARKS[key]
                marked = unit_positions(parameter, [value])
                axes.plot(marked, [y] * len(marked), mark, color=color, ms=7, label=key)
        pairs = [(p.path, format_range(p)) for p in parameters]
        names = [f"{base.plot_text(path)}\n{base.plot_text(text)}" for path, text in pairs]
        axes.set_yticks(range(len(parameters)), names, fontsize=8)
        axes.set_xticks([0, 0.5, 1], ["least", "middle", "greatest"])
        axes.set_xlabel("position in its range, or in the list of its choices")
        axes.set(xlim=(-0.03, 1.03), ylim=(-0.6, len(parameters) - 0.3))
        drawing.suptitle(format_tuning_title(report, "Spread over the folds"))
    return drawing


def draw_held_out(report: records.TuningReport) -> Drawing:
    """Tuned - default of every held-out query, sorted, beside the mean and its interval."""
    values = np.array(report.held_out_values)
    with base.open_drawing(3.2, 2, width_ratios=(3, 1)) as (drawing, [left, right]):
        base.draw_sorted_differences(left, values[:, 1] - values[:, 0])
        label = f"tuned - default, {base.plot_text(report.measure)}"
        left.set(xlabel="held-out queries, sorted by their difference", ylabel=label)
        left.set_xlim(0, len(values))
        right.axhline(0, color=base.INK, lw=0.8)
        right.axhline(report.min_gain, color=base.GREEN, lw=1, ls=":", label="least gain")
        for x, (gain, color) in enumerate(((report.tune, base.GRAY), (report.held_out, base.BLUE))):
            if gain.low is not None and gain.high is not None:
                right.plot([x, x], [gain.low, gain.high], color=color, lw=2)
            right.plot([x], [gain.difference], "o", color=color, ms=7)
        right.set_xticks([0, 1], ["tuning", "held out"])
        gain_text = format_number(report.held_out.difference, signed=True)
        title = f"{gain_text}: {name_verdict(report.verdict)}"
        right.set(xlim=(-0.5, 1.5), ylabel="mean gain and its interval", title=title)
        drawing.suptitle(format_tuning_title(report, "Held-out differences"))
    return drawing


def draw_calibration(report: records.TuningReport, thresholds: records.ThresholdReport) -> Drawing:
    """Best score against the share of queries with a relevant document, and the thresholds."""
    points = [(item.score, item.share) for item in thresholds.calibration]
    with base.open_drawing(3.6) as (drawing, [axes]):
        axes.plot([0, 1], [0, 1], color=base.GRAY, lw=1, ls=":", label="a score is a probability")
        axes.plot(
            *zip(*points, strict=True), "o-", color=base.BLUE, label="held-out queries, in tenths"
        )
        for rule, dashes, label in (
            (thresholds.default, "--", "default thresholds"),
            (thresholds.tuned, "-", "tuned thresholds"),
        ):
            axes.axvline(rule.upper, color=base.GREEN, lw=1, ls=dashes, label=label)
            axes.axvline(rule.lower, color=base.RED, lw=1, ls=dashes)
        label = f"best rerank score in the top {thresholds.top}"
        axes.set(ylim=(-0.03, 1.03), xlabel=label, ylabel="share with a relevant document")
        drawing.suptitle(format_tuning_title(report, "Calibration of the rerank scores"))
    return drawing


#: Kinds of effort, and their axis labels.
EFFORT_LABELS = {
    "candidates": "candidates reranked per query",
    "cost": "cost of 1,000 queries",
    "seconds": "seconds per query",
}
#: By reranker: color, mark.
RERANKER_MARKS = ((base.BLUE, "o"), (base.ORANGE, "D"), (base.RED, "v"), (base.GRAY, "X"))
#: Efforts further apart than this factor get a logarithmic axis.
LINEAR_FACTOR = 4
#: Closer than this factor, ticks stand at 1, 2 and 5, not only at powers of ten.
SHORT_FACTOR = 15


def draw_pareto_front(report: records.TuningReport, front: records.ParetoFront) -> Drawing:
    """All points, the efficient ones joined, and their values on held-out queries."""
    efforts = [
        key
        for key in EFFORT_LABELS
        if key == "candidates" or all(is_known(getattr(point, key)) for point in front.points)
    ]
    with base.open_drawing(4.0, len(efforts), sharey=True) as (drawing, panels):
        for axes, effort in zip(panels, efforts, strict=True):
            _draw_effort(axes, front, effort)
            axes.set_xlabel(EFFORT_LABELS[effort])
        panels[0].set_ylabel(base.plot_text(report.measure))
        drawing.suptitle(format_tuning_title(report, "Quality against effort"))
    return drawing


def _draw_effort(axes: Axes, front: records.ParetoFront, effort: str) -> None:
    points = sorted(front.points, key=lambda point: (getattr(point, effort), point.value))
    keys = (effort, "value", "held_out")
    table = np.array([[getattr(point, key) for key in keys] for point in points], dtype=np.float64)
    x, value, held_out = table.T
    efficient = np.array([point.efficient for point in points])
    names = [source.reranker for source in front.efforts]
    # A candidate of one reranker is not one of another: there each has a line of its own.
    is_separate = effort == "candidates" and len(names) > 1
    for i, name in enumerate(names):
        color, mark = RERANKER_MARKS[i % len(RERANKER_MARKS)]
        label = base.plot_text(name, 32) if len(names) > 1 else None
        joined = efficient & np.array([point.reranker in {name, None} for point in points])
        shown = np.array([point.reranker in {name, None if i == 0 else name} for point in points])
        where = shown & ~efficient
        axes.plot(x[where], value[where], mark, color=color, ms=3, alpha=0.5)
        where = shown & efficient
        axes.plot(x[where], value[where], mark, color=color, ms=5, label=label)
        if is_separate or i == 0:
            where = joined if is_separate else efficient
            label = "front, tuning queries"
            axes.step(x[where], value[where], where="post", color=color, lw=1.2, label=label)
            label = "the same, held out"
            axes.plot(x[where], held_out[where], "^-", color=base.GREEN, ms=4, lw=0.7, label=label)
    for role in ("default", "chosen"):
        mark, color = MARKS[role]
        where = np.array([role in point.roles for point in points])
        axes.plot(x[where], value[where], mark, color=color, mfc="none", mew=1.5, ms=10, label=role)
    positive = [value for value in x.tolist() if value > 0]
    for line in axes.lines:
        line.set_clip_on(False)
    if not positive or max(positive) < LINEAR_FACTOR * min(positive):
        axes.set_xlim(left=0)
    else:  # linear up to the smallest effort above 0, logarithmic beyond
        low, high = min(positive), max(positive)
        axes.set_xscale("symlog", linthresh=low, linscale=0.5)
        axes.set_xlim(0, high * 1.25)
        subs = (1, 2, 5) if high < SHORT_FACTOR * low else (1,)
        axes.xaxis.set_major_locator(SymmetricalLogLocator(base=10, linthresh=low, subs=subs))
        axes.xaxis.set_major_formatter(StrMethodFormatter("{x:.6g}"))
        axes.xaxis.set_minor_locator(NullLocator())


#: By name, in the order of the page.
DRAWINGS: Mapping[str, Callable[..., Drawing]] = {
    "held-out": draw_held_out,
    "history": draw_history,
    "slices": draw_slices,
    "folds": draw_folds,
    "calibration": draw_calibration,
    "front": draw_pareto_front,
}


def _make_figures(name: str, report: records.TuningReport) -> Iterator[Figure]:
    parts = {"calibration": report.thresholds[:1], "front": (report.front,)}
    draw = partial(DRAWINGS[name], report, *parts.get(name, ()))
    for picture in tuning_pictures(report):
        if picture.file == f"{name}.png":
            yield Figure(picture.file, picture.title, picture.caption, draw)


for _position, _name in enumerate(DRAWINGS, 1):
    base.register_plot(_name, "tuning", position=_position)(partial(_make_figures, _name))
