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

    Hidden files and records of provenance are no trials.

    Args:
        folder: Of the dataset.
        given: As the ``dataset.yaml`` names it.
    """
    if not (is_pattern(folder, given) and is_supported(given)):
        return (folder / given,)
    try:
        trials = [path for path in folder.glob(given) if _is_list(path)]
    except (OSError, ValueError):
        return (folder / given,)
    return tuple(sorted(trials, key=lambda path: natural_key(path.relative_to(folder).as_posix())))


def would_match(folder: Path, given: str, path: Path) -> bool:
    """Whether a file that is written there becomes one of a pattern's files.

    Args:
        folder: Of the dataset.
        given: As the ``dataset.yaml`` names it.
        path: Any, as ``folder`` is written.
    """
    if not is_pattern(folder, given) or not path.is_relative_to(folder) or not _is_list(path):
        return False
    names, patterns = path.relative_to(folder).parts, Path(given).parts
    return len(names) == len(patterns) and all(map(fnmatchcase, names, patterns))


def _is_list(path: Path) -> bool:
    """Whether a file is neither hidden nor a record of provenance."""
    return not path.name.startswith(".") and not path.name.endswith(SIDECAR)


def natural_key(name: str) -> tuple[list[tuple[str, int]], str]:
    """Orders names as people number them: numbers by value, so that ``a-9`` precedes ``a-10``.

    Args:
        name: Names with equal numbers, such as ``a-1`` and ``a-01``, follow the order of bytes.
    """
    parts = re.findall(r"([^0-9]*)([0-9]*)", name)
    return [(text, int(number) if number else -1) for text, number in parts], name
