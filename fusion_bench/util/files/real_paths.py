"""Paths without symbolic links."""

from __future__ import annotations

import os
from pathlib import Path


def resolve_path(path: Path) -> Path:
    """The absolute path without links, as ``Path.resolve``; links in a circle stay.

    ``Path.resolve`` refuses those in Python 3.11 and 3.12. Whatever opens the file says why it
    cannot.
    """
    return Path(os.path.realpath(path))
