"""A lock is held by one descriptor, and ends with it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from fusion_bench.util.files import take_lock


def test_only_one_holds_a_lock(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with pytest.raises(FileNotFoundError):
        take_lock(path)
    path.touch()
    first = take_lock(path)
    assert first is not None
    assert take_lock(path) is None
    os.close(first)
    second = take_lock(path, wait=True)
    assert second is not None
    os.close(second)


def test_the_lock_of_a_file_that_was_deleted_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "lock"
    path.touch()
    open_file = os.open

    def open_and_delete(name: Path, flags: int) -> int:
        handle = open_file(name, flags)
        name.unlink()
        return handle

    monkeypatch.setattr(os, "open", open_and_delete)
    assert take_lock(path) is None
