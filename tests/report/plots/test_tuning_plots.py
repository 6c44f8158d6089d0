"""Plots of a tuning run: what is drawn, and how the captions read it."""

from typing import Any

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from fusion_bench.report.plots import make_figures
from fusion_bench.report.plots.tuning import (
    draw_calibration,
    draw_folds,
    draw_held_out,
    draw_history,
    draw_pareto_front,
    draw_slices,
)
from fusion_bench.report.tuning_records import RerankerEffort, TuningReport
from tests.report.tuning_cases import front, front_with_points, gain, record, thresholds, trials


def caption_of(file: str, report: TuningReport) -> str:
    return next(figure.caption for figure in make_figures("tuning", report) if figure.file == file)


def points(figure: Figure, axes: int, line: int) -> list[tuple[float, float]]:
    xy: Any = figure.axes[axes].lines[line].get_xydata()
    return [(float(x), float(y)) for x, y in xy]


def test_history_shows_every_trial_and_the_best_so_far() -> None:
    whole = record()
    axes = draw_history(whole).axes[0]
    labels = [str(line.get_label()) for line in axes.lines]
    assert labels == ["default", "seed", "sampler", "best so far"]
    shown = sum(len(np.asarray(line.get_xdata())) for line in axes.lines[:3])
    assert shown == len(whole.completed_trials)
    best = np.asarray(axes.lines[3].get_ydata(), dtype=float)
    assert (np.diff(best) >= 0).all()
    assert best[-1] == max(trial.value or 0 for trial in whole.completed_trials)


def test_slices_come_by_importance_and_their_names_apart() -> None:
    figure = draw_slices(record())
    titles = [axes.get_title(loc="left") for axes in figure.axes if axes.get_visible()]
    assert titles[:2] == ["fusion.weights.dense", "fusion.k"]
    assert len(titles) == 4
    assert figure.axes[1].get_xscale() == "log"
    offsets = np.asarray(figure.axes[0].collections[0].get_offsets())
    assert len(offsets) == len(record().completed_trials)
    axes = next(a for a in figure.axes if a.get_title("left") == "blend.method")
    labels = axes.get_xticklabels()
    assert [label.get_text() for label in labels] == ["none", "linear"]
    assert {label.get_rotation() for label in labels} == {30.0}


def test_folds_are_put_in_their_range_and_counted() -> None:
    axes = draw_folds(record()).axes[0]
    names = [label.get_text() for label in axes.get_yticklabels()]
    row = names.index("fusion.k\n1 to 1000 log")
    k = [line for line in axes.lines if set(np.atleast_1d(line.get_ydata()).tolist()) == {row}]
    expected = np.log([10, 20, 40]) / np.log(1000)
    assert np.asarray(k[0].get_xdata(), dtype=float) == pytest.approx(expected, abs=0.005)
    row = names.index("blend.method\nnone, linear")
    counts = {round(text.get_position()[1]): text.get_text() for text in axes.texts}
    assert counts[row] == "×3"
    assert names.index("fusion.k\n1 to 1000 log") not in counts


def test_held_out_differences_and_the_interval_that_decides() -> None:
    figure = draw_held_out(record())
    edges = [patch.get_data() for patch in figure.axes[0].patches]  # type: ignore[attr-defined]
    assert sum((edge.values > 0).sum() for edge in edges) == 30
    assert sum((edge.values < 0).sum() for edge in edges) == 20
    assert figure.axes[1].get_title("left") == "+0.0300: ship"
    ends = [points(figure, 1, line) for line in range(len(figure.axes[1].lines))]
    assert [(1.0, 0.01), (1.0, 0.05)] in ends
    open_end = draw_held_out(record(held_out=gain(0.1, None, None)))
    drawn_ends = [points(open_end, 1, line) for line in range(len(open_end.axes[1].lines))]
    assert [(1.0, 0.1)] in drawn_ends


def test_calibration_against_the_diagonal_with_both_pairs_of_thresholds() -> None:
    axes = draw_calibration(record(), thresholds()).axes[0]
    assert np.asarray(axes.lines[1].get_xydata()).tolist() == [[0.1, 0.2], [0.9, 0.7]]
    uprights = [float(np.asarray(line.get_xdata())[0]) for line in axes.lines[2:]]
    assert uprights == [0.7, 0.3, 0.5, 0.2]


def test_every_picture_comes_with_words() -> None:
    found = list(make_figures("tuning", record(front=front(), thresholds=(thresholds(),))))
    assert [figure.file for figure in found] == [
        "held-out.png",
        "history.png",
        "slices.png",
        "folds.png",
        "calibration.png",
        "front.png",
    ]
    assert all(len(figure.caption) > 40 for figure in found)
    assert all(figure.draw().axes for figure in found)


UNKNOWN: dict[int, dict[str, Any]] = {
    point.depth: {"cost": None, "seconds": None} for point in front().points
}
BARE: dict[str, Any] = {"folds": (), "nested": None, "importances": (), "parameters": ()}


def test_what_is_not_in_the_record_or_all_zero_is_not_drawn() -> None:
    choice = record().choice.model_copy(update={"trial": 0})
    report = record(**BARE, trials=trials()[:1], choice=choice)
    assert [figure.file for figure in make_figures("tuning", report)] == [
        "held-out.png",
        "history.png",
    ]
    nothing = gain(0.0, 0.0, 0.0, wins=0, losses=0)
    report = record(tune=nothing, held_out=nothing)
    assert "held-out.png" not in [figure.file for figure in make_figures("tuning", report)]


@pytest.mark.parametrize(("count", "expected"), [(40, "came early"), (6, "came late")])
def test_the_history_says_whether_more_trials_may_help(count: int, expected: str) -> None:
    tried = trials()[:count]
    best = max((t for t in tried if t.value is not None), key=lambda t: t.value or 0.0)
    choice = record().choice.model_copy(update={"trial": best.number})
    report = record(**BARE, trials=tried, choice=choice)
    assert expected in caption_of("history.png", report)


def line(axes: Axes, label: str) -> list[tuple[float, float]]:
    (found,) = [line for line in axes.lines if line.get_label() == label]
    xy: Any = found.get_xydata()
    return [(float(x), float(y)) for x, y in xy]


def test_the_picture_joins_efficient_points_and_marks_default_and_choice() -> None:
    figure = draw_pareto_front(record(), front())
    assert [axes.get_xlabel() for axes in figure.axes] == [
        "candidates reranked per query",
        "cost of 1,000 queries",
        "seconds per query",
    ]
    first, second = figure.axes[:2]
    efficient = [(0.0, 0.5), (10.0, 0.557), (60.0, 0.56)]
    assert line(first, "front, tuning queries") == efficient
    assert [x for x, _ in line(second, "front, tuning queries")] == [0.0, 0.02, 0.12]
    held_out = [y for _, y in line(first, "the same, held out")]
    assert held_out == pytest.approx([y - 0.01 for _, y in efficient])
    assert line(first, "default") == [(50.0, 0.53)]
    assert line(first, "chosen") == [(60.0, 0.56)]
    ticks = np.asarray(first.get_xticks())
    assert ticks[ticks <= 60].tolist() == [0.0, 10.0, 20.0, 50.0]


def test_two_rerankers_have_two_marks_and_candidates_are_not_joined_across_them() -> None:
    two = (RerankerEffort(reranker="ce"), RerankerEffort(reranker="small"))
    points = {10: {"reranker": "small"}, 20: {"reranker": "small"}}
    candidates, cost = draw_pareto_front(record(), front_with_points(points, efforts=two)).axes[:2]
    assert line(candidates, "small") == [(10.0, 0.557)]
    assert line(candidates, "ce") == [(0.0, 0.5), (60.0, 0.56)]
    steps = [line for line in candidates.lines if line.get_drawstyle() == "steps-post"]
    found = [np.asarray(line.get_xdata()).tolist() for line in steps]
    assert found == [[0.0, 60.0], [0.0, 10.0]]
    assert [x for x, _ in line(cost, "front, tuning queries")] == [0.0, 0.02, 0.12]
