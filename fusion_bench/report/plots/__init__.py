"""Figures: one file a plot, found by its name in this folder or by an entry point.

A plot is a function that yields the :class:`~fusion_bench.report.page.Figure` objects of a record,
registered with :func:`register_plot`. Other distributions add a
:class:`Plot` through the entry-point group ``fusion_bench.plots``.

All plots are drawn from the stored record, so that a page can be rendered again without Optuna and
its study. Importing this package imports Matplotlib. Nothing global is used (no pyplot, no rc file
of the user), so the same record gives the same bytes.
"""

import os
import sys
from contextlib import suppress

if "matplotlib" not in sys.modules:
    # Matplotlib cannot be imported while MPLBACKEND names no backend. Nothing here is drawn on a
    # screen; a name that Matplotlib knows has its effect on what else uses it in this process.
    backend = os.environ.pop("MPLBACKEND", None)
    try:
        import matplotlib as mpl
    finally:
        if backend is not None:
            os.environ["MPLBACKEND"] = backend
    if backend:
        with suppress(ValueError):
            mpl.rcParams["backend"] = backend

from fusion_bench.report.plots._base import (
    Plot,
    make_figures,
    register_plot,
    render_png,
    render_svg,
)

__all__ = ["Plot", "make_figures", "register_plot", "render_png", "render_svg"]
