"""Matplotlib, whatever ``MPLBACKEND`` says: nothing here is drawn on a screen.

Matplotlib cannot be imported while the variable names no backend. A name that it knows has its
effect on what else uses Matplotlib in this process.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from typing import Final

BACKEND: Final = "MPLBACKEND"


def _import_matplotlib() -> None:
    if "matplotlib" in sys.modules:
        return
    backend = os.environ.pop(BACKEND, None)
    try:
        import matplotlib as mpl
    finally:
        if backend is not None:
            os.environ[BACKEND] = backend
    if backend:
        with suppress(ValueError):
            mpl.rcParams["backend"] = backend


_import_matplotlib()
