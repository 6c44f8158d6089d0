"""Aligned runs as a folder: raw ``.npy`` arrays and a JSON header, read back as memory maps.

A folder is written whole or not at all: beside its place first, then moved there. Whatever does
not agree with its header is refused, never believed. Nothing is pickled.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from dataclasses import fields
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from fusion_bench.align import AlignedRuns
from fusion_bench.errors import DataError, FusionBenchError
from fusion_bench.ids import Ids

__all__ = ["VERSION", "load", "save"]

#: Of the format: a folder of another version is refused.
VERSION: Final = 1
HEADER, NAMES = "header.json", "names.json"

Array = NDArray[np.generic]


def save(runs: AlignedRuns, folder: Path) -> Path:
    """Write aligned runs, in place of what was saved there before.

    Args:
        runs: Any view.
        folder: Where to; its parents are made if need be.

    Raises:
        FusionBenchError: The folder holds something else, or cannot be written.
    """
    folder = Path(folder)
    if folder.exists() and not (folder / HEADER).is_file():
        raise FusionBenchError(f"{folder}: is there already and holds no saved alignment")
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".draft-", dir=folder.parent) as made:
            draft = Path(made) / "new"
            draft.mkdir()
            _write(runs, draft)
            if folder.exists():
                os.replace(folder, Path(made) / "old")  # noqa: PTH105 - not across disks
            os.replace(draft, folder)  # noqa: PTH105
    except OSError as error:
        raise FusionBenchError(f"{folder}: the alignment cannot be written: {error}") from error
    return folder


def load(folder: Path, *, mmap: bool = True, verify: bool = True) -> AlignedRuns:
    """Read back what :func:`save` wrote.

    Args:
        folder: Of the saved alignment.
        mmap: Map the arrays, so that only what is looked at is ever read; otherwise read them.
        verify: Compare the sum of each array with the header, which reads every byte once.

    Raises:
        DataError: It is not complete, was changed, or is of another version.
    """
    folder = Path(folder)
    try:
        header = _header(folder)
        names = _names(folder, header)
        arrays = {
            name: _array(folder, name, known, mmap=mmap, verify=verify)
            for name, known in header["arrays"].items()
        }
        return _joined(names, arrays)
    except (OSError, EOFError, ValueError, TypeError, KeyError) as error:
        raise _broken(folder, f"{type(error).__name__}: {error}") from error


def _write(runs: AlignedRuns, draft: Path) -> None:
    """Arrays, names, and last the header, which says that the others are complete."""
    names, arrays = _parts(runs)
    text = json.dumps(names, ensure_ascii=False).encode("utf-8", "surrogatepass")
    (draft / NAMES).write_bytes(text)
    for name, array in arrays.items():
        np.save(draft / f"{name}.npy", array, allow_pickle=False)
    content = {
        "version": VERSION,
        "names": {"bytes": len(text), "sha256": hashlib.sha256(text).hexdigest()},
        "arrays": {name: _described(array) for name, array in arrays.items()},
    }
    header = {"checksum": _checksum(content), "content": content}
    (draft / HEADER).write_text(json.dumps(header, indent=1) + "\n")


def _parts(runs: AlignedRuns) -> tuple[dict[str, Any], dict[str, Array]]:
    """What goes into JSON, and the arrays."""
    names: dict[str, Any] = {}
    arrays: dict[str, Array] = {}
    for field in fields(runs):
        value = getattr(runs, field.name)
        if field.name.startswith("_"):
            continue
        if isinstance(value, np.ndarray):
            arrays[field.name] = np.ascontiguousarray(value)
        elif isinstance(value, Ids):
            arrays[field.name] = np.ascontiguousarray(value.words)
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


def _described(array: Array) -> dict[str, Any]:
    return {
        "dtype": array.dtype.str,
        "shape": list(array.shape),
        "bytes": array.nbytes,
        "sum": _sum(array),
    }


def _sum(array: Array) -> int:
    """Of the bytes as 64-bit words: cheap enough to be looked at on every opening."""
    data = array.reshape(-1).view(np.uint8)
    whole = len(data) // 8 * 8
    words = data[:whole].view(np.uint64)
    with np.errstate(over="ignore"):
        return int(np.add.reduce(words)) + int(data[whole:].sum(dtype=np.int64))


def _checksum(content: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def _header(folder: Path) -> dict[str, Any]:
    header = json.loads((folder / HEADER).read_bytes())
    content: dict[str, Any] = header["content"]
    if content["version"] != VERSION:
        raise _broken(folder, f"format version {content['version']}, this reads {VERSION}")
    if header["checksum"] != _checksum(content):
        raise _broken(folder, f"{HEADER} does not agree with its checksum")
    return content


def _names(folder: Path, header: dict[str, Any]) -> dict[str, Any]:
    text = (folder / NAMES).read_bytes()
    if hashlib.sha256(text).hexdigest() != header["names"]["sha256"]:
        raise _broken(folder, f"{NAMES} does not agree with the header")
    names: dict[str, Any] = json.loads(text.decode("utf-8", "surrogatepass"))
    return names


def _array(folder: Path, name: str, known: dict[str, Any], *, mmap: bool, verify: bool) -> Array:
    path = folder / f"{name}.npy"
    # Nothing can be mapped where there is nothing.
    mode: Literal["r"] | None = "r" if mmap and known["bytes"] else None
    # A map that is not asked to be one: slices of it are plain arrays.
    array: Array = np.asarray(np.load(path, mmap_mode=mode, allow_pickle=False))
    if [array.dtype.str, list(array.shape)] != [known["dtype"], known["shape"]]:
        raise _broken(folder, f"{path.name} has another size than the header says")
    if verify and _sum(array) != known["sum"]:
        raise _broken(folder, f"{path.name} does not agree with its sum in the header")
    return array


def _broken(folder: Path, why: str) -> DataError:
    return DataError(f"{folder}: not a saved alignment that can be used ({why}): make it again")
