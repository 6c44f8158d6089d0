"""Drafts: files and folders that are written under another name and then moved into place.

A process holds a lock on each of its drafts. The system releases the lock of a killed process, so
the next one that writes to the folder can tell its drafts and remove them.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import time
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final

from fusion_bench.util.files.file_locks import take_lock

#: Names of drafts end so, and start with a dot.
UNFINISHED: Final = ".part"
#: Seconds after which nobody is writing a draft any more, where the file system has no locks.
ABANDONED: Final = 3600


@contextlib.contextmanager
def make_draft(parent: Path, *, is_folder: bool = False) -> Iterator[Path]:
    """An empty file or folder under a name of its own, removed in the end if it is still there.

    Raises:
        OSError: The folder cannot be written to.
    """
    remove_abandoned_once(parent.absolute())
    draft, lock = _create_draft(parent, is_folder=is_folder)
    try:
        yield draft
    finally:
        _remove_draft(draft)
        if lock is not None:
            os.close(lock)


def remove_abandoned(parent: Path) -> None:
    """Remove the drafts that killed processes left in a folder.

    Raises:
        OSError: The folder cannot be read.
    """
    for draft in parent.glob(f".*{UNFINISHED}"):
        try:
            lock = take_lock(draft)
        except FileNotFoundError:
            continue
        except OSError:
            if draft.lstat().st_mtime + ABANDONED < time.time():
                _remove_draft(draft)
            continue
        if lock is not None:
            _remove_draft(draft)
            os.close(lock)


@cache
def remove_abandoned_once(parent: Path) -> None:
    """The same, once in each process: listing a large folder takes time."""
    with contextlib.suppress(OSError):
        remove_abandoned(parent)


def _create_draft(parent: Path, *, is_folder: bool) -> tuple[Path, int | None]:
    """A new draft and the descriptor that holds its lock; None where there are no locks."""
    while True:
        draft = parent / f".{secrets.token_hex(8)}{UNFINISHED}"
        if is_folder:
            draft.mkdir()
        else:
            draft.touch(exist_ok=False)
        try:
            lock = take_lock(draft)
        except FileNotFoundError:
            continue  # removed before it had a lock
        except OSError:
            return draft, None
        if lock is not None:
            return draft, lock


def _remove_draft(draft: Path) -> None:
    if draft.is_dir() and not draft.is_symlink():
        shutil.rmtree(draft, ignore_errors=True)
    else:
        with contextlib.suppress(OSError):
            draft.unlink()
