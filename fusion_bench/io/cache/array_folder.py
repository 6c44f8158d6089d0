"""Arrays in a folder, one ``.npy`` file each, mapped into memory when they are read back.

Beside them stands ``contents.json``: what was stored with them, and a checksum of each. A folder is
written under another name and moved into place. Opening it checks ``contents.json``, the version,
the byte order and the key; :func:`check_arrays` checks every byte.
"""

from __future__ import annotations

import json
import os
import sys
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from fusion_bench._version import __version__
from fusion_bench.io.cache.file_stamps import hash_contents
from fusion_bench.util.files.drafts import make_draft

Array: TypeAlias = NDArray[np.generic]
CONTENTS: Final = "contents.json"
#: Bytes from which on a file is mapped; a smaller one is read, and keeps no file open.
LARGE_ARRAY: Final = 1 << 16


@dataclass(frozen=True, eq=False)
class StoredArrays:
    """The contents of a folder.

    Attributes:
        facts: Plain values that were stored beside the arrays.
        arrays: Read-only; nothing of a large one is read before it is looked at.
    """

    facts: Mapping[str, Any]
    arrays: Mapping[str, Array]


def write_arrays(
    folder: Path, key: str, facts: Mapping[str, Any], arrays: Mapping[str, Array]
) -> None:
    """Write arrays to a folder, all or none, in place of what is there.

    Args:
        folder: Its parent is there.
        key: What the contents were made from; :func:`open_arrays` asks for the same.
        facts: Plain values beside the arrays.
        arrays: Of numbers.

    Raises:
        OSError: It cannot be written.
    """
    with make_draft(folder.parent, is_folder=True) as draft:
        for name, array in arrays.items():
            np.save(draft / f"{name}.npy", np.ascontiguousarray(array), allow_pickle=False)
        hashes = {path.stem: hash_contents(path) for path in draft.iterdir()}
        contents = {**_versions(), "key": key, "facts": dict(facts), "arrays": hashes}
        text = json.dumps(contents)
        (draft / CONTENTS).write_text(json.dumps([zlib.crc32(text.encode()), text]))
        _replace_folder(draft, folder)


def _replace_folder(draft: Path, folder: Path) -> None:
    """Move a folder to where another may be, which its readers keep open."""
    if folder.exists():
        with make_draft(folder.parent, is_folder=True) as old:
            os.replace(folder, old / folder.name)  # noqa: PTH105 - the call that promises to be atomic
    os.replace(draft, folder)  # noqa: PTH105


def _versions() -> dict[str, str]:
    return {"library": __version__, "byte_order": sys.byteorder}


def _read_contents(folder: Path, key: str) -> dict[str, Any]:
    checksum, text = json.loads((folder / CONTENTS).read_bytes())
    if zlib.crc32(text.encode()) != checksum:
        raise ValueError(f"{CONTENTS} does not agree with its checksum")
    contents: dict[str, Any] = json.loads(text)
    for name, needed in (_versions() | {"key": key}).items():
        if contents[name] != needed:
            raise ValueError(f"{name} is {contents[name]!r}, and {needed!r} is needed")
    return contents


def check_arrays(folder: Path, key: str) -> None:
    """Read every byte of what :func:`write_arrays` wrote.

    Raises:
        OSError: There is none, or it cannot be read.
        ValueError: It is not what was written.
    """
    for name, known in _read_contents(folder, key)["arrays"].items():
        if hash_contents(folder / f"{name}.npy") != known:
            raise ValueError(f"array {name!r} does not agree with its checksum")


def open_arrays(folder: Path, key: str) -> StoredArrays:
    """Open what :func:`write_arrays` wrote and :func:`check_arrays` checked.

    Raises:
        OSError: There is none, or it cannot be read.
        ValueError: It is not what it should be; says why.
    """
    contents = _read_contents(folder, key)
    arrays = {name: _open_array(folder / f"{name}.npy") for name in contents["arrays"]}
    return StoredArrays(contents["facts"], arrays)


def _open_array(path: Path) -> Array:
    is_large = path.stat().st_size >= LARGE_ARRAY
    array: Array = np.load(path, mmap_mode="r" if is_large else None, allow_pickle=False)
    array = array.view(np.ndarray)
    array.setflags(write=False)
    return array
