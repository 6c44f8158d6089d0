"""Figures: one file a plot, found by its name in this folder or by an entry point.

A plot is a function that yields the :class:`~fusion_bench.report.page.Figure` objects of a record,
registered with :func:`register_plot`. Other distributions add a
:class:`Plot` through the entry-point group ``fusion_bench.plots``.

All plots are drawn from the stored record, so that a page can be rendered again without Optuna and
its study. Importing this package imports Matplotlib. Nothing global is used (no pyplot, no rc file
of the user), so the same record gives the same bytes.
"""

import fusion_bench.report.plots._library  # noqa: F401 - before Matplotlib
from fusion_bench.report.plots._base import (
    Plot,
    make_figures,
    register_plot,
    render_png,
    render_svg,
)

__all__ = ["Plot", "make_figures", "register_plot", "render_png", "render_svg"]
