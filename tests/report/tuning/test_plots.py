"""Pictures of a tuning run: what is drawn is what was found, and words stand beside it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure

from fusion_bench.report.tuning import outcome_plots, plots
from fusion_bench.report.tuning.contours import PRIOR, WIDTH_OF_MEAN, contours, surface
from fusion_bench.report.tuning.figures import tuning_figures
from fusion_bench.report.write import write_tuning as write
from tests.report.tuning.cases import front, gain, record, thresholds, trials


def points(figure: Figure, axes: int, line: int) -> list[tuple[float, float]]:
    xy: Any = figure.axes[axes].lines[line].get_xydata()
    return [(float(x), float(y)) for x, y in xy]


def test_history_shows_every_trial_and_the_best_so_far() -> None:
    whole = record()
    axes = plots.history(whole).axes[0]
    labels = [str(line.get_label()) for line in axes.lines]
    assert labels == ["default", "seed", "sampler", "best so far"]
    shown = sum(len(np.asarray(line.get_xdata())) for line in axes.lines[:3])
    assert shown == len(whole.done)
    best = np.asarray(axes.lines[3].get_ydata(), dtype=float)
    assert (np.diff(best) >= 0).all()
    assert best[-1] == max(trial.value or 0 for trial in whole.done)


def test_slices_come_by_importance() -> None:
    figure = plots.slices(record())
    titles = [axes.get_title(loc="left") for axes in figure.axes if axes.get_visible()]
    assert titles[:2] == ["fusion.weights.dense", "fusion.k"]
    assert len(titles) == 4
    assert figure.axes[1].get_xscale() == "log"
    offsets = np.asarray(figure.axes[0].collections[0].get_offsets())
    assert len(offsets) == len(record().done)


def test_contours_need_enough_points() -> None:
    figure = contours(record())
    assert figure is not None
    pairs = {(a.get_xlabel(), a.get_ylabel()) for a in figure.axes if a.get_visible()}
    assert ("fusion.weights.dense", "fusion.k") in pairs
    assert contours(record(trials=trials()[:8])) is None
    ratios = tuple(one.model_copy(update={"ratio": True}) for one in record().parameters)
    assert contours(record(parameters=ratios)) is None, "one of two weights stands at 1"


@pytest.mark.parametrize("free", ["fusion.weights.dense", "fusion.k"])
def test_trials_on_one_line_span_no_surface(free: str) -> None:
    fixed = {"fusion.weights.dense": 1.0, "fusion.k": 60}
    lined = [
        trial.model_copy(update={"params": {**fixed, free: trial.params[free]}})
        for trial in trials()
    ]
    assert contours(record(trials=tuple(lined))) is None


def test_the_surface_is_a_local_mean_and_low_where_nobody_looked() -> None:
    rng = np.random.default_rng(5)
    x, y, values = rng.random((3, 30)) * [[0.3], [1], [1]]
    found = surface(x, y, values)
    at = np.linspace(0, 1, len(found))
    bad = float(np.quantile(values, 0.25))
    for row, column in [(0, 0), (10, 5), (30, 20), (40, 31)]:
        squares = (x - at[column]) ** 2 + (y - at[row]) ** 2
        weights = np.exp(-squares / (2 * WIDTH_OF_MEAN**2))
        expected = ((weights * values).sum() + PRIOR * bad) / (weights.sum() + PRIOR)
        assert found[row, column] == pytest.approx(expected)
    assert found[:, -1] == pytest.approx(bad)


def test_importance_is_a_bar_each() -> None:
    axes = plots.importance(record()).axes[0]
    assert [round(bar.get_width(), 3) for bar in axes.patches] == [0.3, 0.7]  # type: ignore[attr-defined]


def test_beside_importance_stands_what_a_number_alone_is_worth() -> None:
    first, second, *rest = record().parameters
    whole = record(parameters=(first.model_copy(update={"reset": 0.521}), second, *rest))
    left, right = plots.importance(whole).axes
    assert [text.get_text() for text in right.texts] == ["0.0190", "–"]
    assert [label.get_text() for label in left.get_yticklabels()] == [
        "fusion.k",
        "fusion.weights.dense",
    ]
    meaning = next(p.caption for p in tuning_figures(whole) if p.title == "Parameter importance")
    assert "the most with fusion.k (0.0190 nDCG@10)" in meaning
    assert "can stay at its default" not in next(
        p.caption for p in tuning_figures(record()) if p.title == "Parameter importance"
    ), "importance alone does not tell that"


def test_fold_spread_puts_each_fold_in_its_range() -> None:
    axes = outcome_plots.fold_spread(record()).axes[0]
    names = [label.get_text() for label in axes.get_yticklabels()]
    row = names.index("fusion.k\n1 to 1000, log")
    k = [line for line in axes.lines if set(np.atleast_1d(line.get_ydata()).tolist()) == {row}]
    expected = np.log([10, 20, 40]) / np.log(1000)
    assert np.asarray(k[0].get_xdata(), dtype=float) == pytest.approx(expected, abs=0.005)


def test_folds_that_agree_are_counted_and_choices_are_named() -> None:
    axes = outcome_plots.fold_spread(record()).axes[0]
    names = [label.get_text() for label in axes.get_yticklabels()]
    row = names.index("blend.method\n2 choices")
    said = {text.get_text(): text.xy for text in axes.texts if text.xy[1] == row}  # type: ignore[attr-defined]
    assert said == {"none": (0.0, row), "linear": (1.0, row), "×3": (1.0, row)}
    row = names.index("fusion.k\n1 to 1000, log")
    assert not [text for text in axes.texts if text.xy[1] == row]  # type: ignore[attr-defined]


def test_the_names_of_choices_do_not_run_into_each_other() -> None:
    figure = plots.slices(record())
    axes = next(a for a in figure.axes if a.get_title("left") == "blend.method")
    labels = axes.get_xticklabels()
    assert [label.get_text() for label in labels] == ["none", "linear"]
    assert {label.get_rotation() for label in labels} == {30.0}
    for title in ("Slices", "Optimisation history"):
        meaning = next(p.caption for p in tuning_figures(record()) if p.title == title)
        assert "The lower part of the axis is cut off" in meaning


def test_held_out_differences_and_the_interval_that_decides() -> None:
    figure = outcome_plots.held_out(record())
    edges = [patch.get_data() for patch in figure.axes[0].patches]  # type: ignore[attr-defined]
    assert sum((edge.values > 0).sum() for edge in edges) == 30
    assert sum((edge.values < 0).sum() for edge in edges) == 20
    assert figure.axes[1].get_title() == "+0.0300: ship"
    ends = [points(figure, 1, line) for line in range(len(figure.axes[1].lines))]
    assert [(1.0, 0.01), (1.0, 0.05)] in ends
    open_end = outcome_plots.held_out(record(held_out=gain(0.1, None, None)))
    drawn_ends = [points(open_end, 1, line) for line in range(len(open_end.axes[1].lines))]
    assert [(1.0, 0.1)] in drawn_ends


def test_calibration_against_the_diagonal_with_both_pairs_of_thresholds() -> None:
    axes = outcome_plots.calibration(thresholds()).axes[0]
    assert np.asarray(axes.lines[1].get_xydata()).tolist() == [[0.1, 0.2], [0.9, 0.7]]
    uprights = [float(np.asarray(line.get_xdata())[0]) for line in axes.lines[2:]]
    assert uprights == [0.7, 0.3, 0.5, 0.2]


def test_every_picture_comes_with_words() -> None:
    found = list(tuning_figures(record(front=front(), thresholds=thresholds())))
    assert [figure.file for figure in found] == [
        "held-out.png",
        "history.png",
        "importance.png",
        "slices.png",
        "contours.png",
        "folds.png",
        "calibration.png",
        "front.png",
    ]
    assert all(len(figure.caption) > 40 for figure in found)
    assert all(figure.draw().axes for figure in found)


BARE = {"folds": (), "nested": None, "importances": (), "parameters": ()}


def test_what_was_not_found_is_not_drawn_and_what_is_drawn_is_written(tmp_path: Path) -> None:
    choice = record().choice.model_copy(update={"trial": 0})
    written = write(
        record(**BARE, trials=trials()[:1], choice=choice), tmp_path, tuned="", plots=True
    )
    names = [path.name for path in written]
    assert names == ["tuning.json", "tuning.md", "tuned.yaml", "held-out.png", "history.png"]
    page = (tmp_path / "tuning.md").read_text(encoding="utf-8")
    assert all(f"({name})" in page for name in names[3:])


@pytest.mark.parametrize(
    ("count", "expected"),
    [(40, "so more trials are unlikely"), (6, "so more trials may find more")],
)
def test_history_says_whether_the_search_had_settled(count: int, expected: str) -> None:
    tried = trials()[:count]
    best = max((t for t in tried if t.value is not None), key=lambda t: t.value or 0.0)
    choice = record().choice.model_copy(update={"trial": best.number})
    meanings = {
        p.file: p.caption for p in tuning_figures(record(**BARE, trials=tried, choice=choice))
    }
    assert expected in meanings["history.png"]
