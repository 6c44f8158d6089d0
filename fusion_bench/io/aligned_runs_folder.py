"""Aligned runs as one folder of arrays, mapped into memory when it is read back.

The folder is of the cache's kind (see :mod:`fusion_bench.io.array_folder`), but complete: it needs
no dataset beside it. Whatever does not agree with its contents is refused, never believed.
"""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Any, Final

import numpy as np

from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.ids import IdVocabulary
from fusion_bench.errors import DataError, FusionBenchError
from fusion_bench.io.array_folder import Array, is_array_folder, open_arrays, write_arrays
from fusion_bench.io.stored_tables import restore_ids, split_ids

#: Of the format: a folder of another one is refused.
KEY: Final = "aligned runs 3"


def save_aligned_runs(runs: AlignedRuns, folder: Path) -> Path:
    """Write aligned runs, whole or not at all, in place of what was saved there before.

    Args:
        runs: Any view.
        folder: Where to; its parent is made if need be.

    Raises:
        FusionBenchError: Something else is there, or it cannot be written.
    """
    try:
        if folder.exists() and not is_array_folder(folder):
            raise FusionBenchError(f"{folder}: is there already and holds no saved alignment")
        folder.parent.mkdir(parents=True, exist_ok=True)
        write_arrays(folder, KEY, *_split_fields(runs))
    except OSError as error:
        raise FusionBenchError(f"{folder}: the alignment cannot be written: {error}") from error
    return folder


def load_aligned_runs(folder: Path, *, verify: bool = True) -> AlignedRuns:
    """Map what :func:`save_aligned_runs` wrote, so that only what is looked at is ever read.

    Args:
        folder: Of the saved alignment.
        verify: Compare the checksum of each array with the contents, which reads every byte once.

    Raises:
        DataError: It is not complete, was changed, or is of another version.
    """
    try:
        stored = open_arrays(folder, KEY)
        if verify:
            stored.check_intact()
        return _join_fields(dict(stored.facts), dict(stored.arrays))
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise DataError(
            f"{folder}: not a saved alignment that can be used ({error}): make it again"
        ) from error


def _split_fields(runs: AlignedRuns) -> tuple[dict[str, Any], dict[str, Array]]:
    """The plain values and the arrays of aligned runs."""
    facts: dict[str, Any] = {}
    arrays: dict[str, Array] = {}
    for field in fields(runs):
        value = getattr(runs, field.name)
        if not field.init:
            continue
        if isinstance(value, np.ndarray):
            arrays[field.name] = value
        elif isinstance(value, IdVocabulary):
            arrays |= split_ids(value)
        elif field.name == "roles":
            facts[field.name] = [sorted(roles) for roles in value]
        else:
            facts[field.name] = value if isinstance(value, str) else list(value)
    return facts, arrays


def _join_fields(facts: dict[str, Any], arrays: dict[str, Any]) -> AlignedRuns:
    """The inverse of :func:`_split_fields`."""
    plain: dict[str, Any] = {
        name: value if isinstance(value, str) else tuple(value) for name, value in facts.items()
    }
    plain["roles"] = tuple(frozenset(roles) for roles in facts["roles"])
    return AlignedRuns(vocabulary=restore_ids(arrays), **arrays, **plain)
