"""The files of a list that was made several times: a path with wildcards names all of them."""

from __future__ import annotations

import re
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Final

#: Characters that make a path a pattern, unless a file has exactly this name.
WILDCARDS: Final = frozenset("*?[")
#: Files beside a list that say where it comes from, and are no list.
SIDECAR: Final = ".meta.json"


def is_pattern(folder: Path, given: str) -> bool:
    """Whether a path names several files rather than one.

    Args:
        folder: Of the dataset.
        given: As the ``dataset.yaml`` names it.
    """
    if WILDCARDS.isdisjoint(given):
        return False
    try:
        return not (folder / given).exists()
    except (OSError, ValueError):
        return False  # opening it says why


def is_supported(pattern: str) -> bool:
    """Whether a pattern is relative, and searches folders of a stated depth only."""
    return not Path(pattern).is_absolute() and "**" not in pattern


def expand_path(folder: Path, given: str) -> tuple[Path, ...]:
    """The file of a path, which need not exist; the files of a pattern, in the order of trials.

    Hidden files, files of hidden folders and records of provenance are no trials.

    Args:
        folder: Of the dataset.
        given: As the ``dataset.yaml`` names it.
    """
    if not (is_pattern(folder, given) and is_supported(given)):
        return (folder / given,)
    try:
        names = [path.relative_to(folder) for path in folder.glob(given)]
    except (OSError, ValueError):
        return (folder / given,)
    trials = sorted(filter(_is_list, names), key=lambda name: natural_key(name.as_posix()))
    return tuple(folder / name for name in trials)


def would_match(folder: Path, given: str, path: Path) -> bool:
    """Whether a file that is written there becomes one of a pattern's files.

    Args:
        folder: Of the dataset.
        given: As the ``dataset.yaml`` names it.
        path: Any, as ``folder`` is written.
    """
    if not is_pattern(folder, given) or not path.is_relative_to(folder):
        return False
    name, patterns = path.relative_to(folder), Path(given).parts
    if not _is_list(name) or len(name.parts) != len(patterns):
        return False
    return all(map(fnmatchcase, name.parts, patterns))


def _is_list(name: Path) -> bool:
    """Whether a path from the dataset's folder is neither hidden nor a record of provenance."""
    is_hidden = any(part.startswith(".") and part != ".." for part in name.parts)
    return not is_hidden and not name.name.endswith(SIDECAR)


def natural_key(name: str) -> tuple[list[tuple[str, int]], str]:
    """Orders names as people number them: numbers by value, so that ``a-9`` precedes ``a-10``.

    Args:
        name: Names with equal numbers, such as ``a-1`` and ``a-01``, follow the order of bytes.
    """
    parts = re.findall(r"([^0-9]*)([0-9]*)", name)
    return [(text, int(number) if number else -1) for text, number in parts], name
