"""Aligned runs as one file, mapped into memory when it is read back.

The file is of the cache's kind (see :mod:`fusion_bench.io.array_file`), but complete: it needs no
dataset beside it. Whatever does not agree with its header is refused, never believed.
"""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Any, Final

import numpy as np

from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.packed_ids import Ids
from fusion_bench.errors import DataError, FusionBenchError
from fusion_bench.io.array_file import Array, Stored, is_stored, opened, put

__all__ = ["KEY", "load", "save"]

#: Of the format: a file of another one is refused.
KEY: Final = "aligned runs 2"


def save(runs: AlignedRuns, path: Path) -> Path:
    """Write aligned runs, whole or not at all, in place of what was saved there before.

    Args:
        runs: Any view.
        path: The file; its folder is made if need be.

    Raises:
        FusionBenchError: Something else is there, or it cannot be written.
    """
    path = Path(path)
    try:
        if path.exists() and not (path.is_file() and is_stored(path)):
            raise FusionBenchError(f"{path}: is there already and holds no saved alignment")
        path.parent.mkdir(parents=True, exist_ok=True)
        put(path, KEY, *_parts(runs))
    except OSError as error:
        raise FusionBenchError(f"{path}: the alignment cannot be written: {error}") from error
    return path


def load(path: Path, *, verify: bool = True) -> AlignedRuns:
    """Map what :func:`save` wrote, so that only what is looked at is ever read.

    Args:
        path: Of the saved alignment.
        verify: Compare the checksum of each array with the header, which reads every byte once.

    Raises:
        DataError: It is not complete, was changed, or is of another version.
    """
    path = Path(path)
    try:
        stored = _checked(opened(path, KEY)) if verify else opened(path, KEY)
        return _joined(dict(stored.facts), dict(stored.arrays))
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise DataError(
            f"{path}: not a saved alignment that can be used ({error}): make it again"
        ) from error


def _checked(stored: Stored) -> Stored:
    if not stored.intact():
        raise ValueError("an array does not agree with its checksum")
    return stored


def _parts(runs: AlignedRuns) -> tuple[dict[str, Any], dict[str, Array]]:
    """What goes into the header, and the arrays."""
    names: dict[str, Any] = {}
    arrays: dict[str, Array] = {}
    for field in fields(runs):
        value = getattr(runs, field.name)
        if field.name.startswith("_"):
            continue
        if isinstance(value, np.ndarray):
            arrays[field.name] = value
        elif isinstance(value, Ids):
            arrays[field.name] = value.words
        elif field.name == "roles":
            names[field.name] = [sorted(roles) for roles in value]
        else:
            names[field.name] = value if isinstance(value, str) else list(value)
    return names, arrays


def _joined(names: dict[str, Any], arrays: dict[str, Array]) -> AlignedRuns:
    """The inverse of :func:`_parts`."""
    given: dict[str, Any] = {
        name: value if isinstance(value, str) else tuple(value) for name, value in names.items()
    }
    given["roles"] = tuple(frozenset(roles) for roles in names["roles"])
    if "vocabulary" in arrays:
        given["vocabulary"] = Ids(arrays["vocabulary"].view(np.uint64))
    return AlignedRuns(**(arrays | given))
