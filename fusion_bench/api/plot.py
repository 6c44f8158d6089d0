"""Draw the results of a comparison or a tuning run."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from fusion_bench.errors import ConfigError, DataError, UnknownNameError
from fusion_bench.evaluation.report_records.report import Report
from fusion_bench.evaluation.stored_reports.read_report import read_report

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing


def plot(result: object, kind: str | None = None) -> Drawing:
    """A figure of a comparison or of a tuning run, as the commands draw it.

    Args:
        result: What ``compare`` or ``tune`` returned, a ``Report``, or the path of a
            ``report.json``.
        kind: Name of a plot, such as ``means``; by default the first that there is to show.

    Returns:
        A figure of Matplotlib; a notebook shows it.

    Raises:
        UnknownNameError: No such plot for this.
        DataError: It is nothing that can be drawn, or the file breaks a rule.
    """
    from fusion_bench.report.plots._base import REGISTRY, render_png

    record = _find_record(result)
    page = "evaluation" if isinstance(record, Report) else "tuning"
    given: Sequence[object] = (record,)
    if isinstance(record, Report):
        given = (record, record.collections[0])
    plots = {name: item for name, item in REGISTRY.load_all().items() if item.page == page}
    if kind is not None and kind not in plots:
        raise UnknownNameError("plot", kind, plots)
    chosen = sorted(plots.values(), key=lambda p: p.position) if kind is None else [plots[kind]]
    figure = next((figure for item in chosen for figure in item.make_figures(*given)), None)
    if figure is None:
        raise ConfigError(f"{kind or 'plot'}: nothing to show here: it needs what was not compared")
    drawing = figure.draw()
    # A notebook shows it without any set-up of Matplotlib's backends.
    setattr(drawing, "_repr_png_", lambda: render_png(drawing))  # noqa: B010 - not of its class
    return drawing


def _find_record(result: object) -> object:
    if isinstance(result, str | os.PathLike):
        return read_report(Path(result))
    record = getattr(result, "report", result)
    if not hasattr(record, "model_dump"):
        raise DataError(
            f"cannot draw {type(result).__name__}: give what compare or tune returned, a Report, "
            "or the path of a report.json"
        )
    return record
