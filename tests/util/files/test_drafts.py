"""Drafts of killed processes are removed, and no others."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from fusion_bench.io.dataset_cache import write_arrays
from fusion_bench.util import files
from fusion_bench.util.files import make_draft, remove_abandoned, take_lock, write_atomic

KILLED = """
import os, signal, sys
from pathlib import Path
from fusion_bench.util.files import make_draft

with make_draft(Path(sys.argv[1]), is_folder=bool(sys.argv[2])) as draft:
    (draft / "half" if draft.is_dir() else draft).write_text("half")
    os.kill(os.getpid(), signal.SIGKILL)
"""


def leave_draft(folder: Path, *, is_folder: bool) -> Path:
    before = set(folder.iterdir())
    command = [sys.executable, "-c", KILLED, str(folder), "yes" if is_folder else ""]
    assert subprocess.run(command, check=False).returncode == -signal.SIGKILL
    (draft,) = set(folder.iterdir()) - before
    return draft


@pytest.mark.parametrize("is_folder", [False, True])
def test_a_draft_is_there_while_it_is_used_and_gone_afterwards(
    is_folder: bool, tmp_path: Path
) -> None:
    with make_draft(tmp_path, is_folder=is_folder) as draft:
        assert draft.name.startswith(".")
        assert draft.is_dir() == is_folder
        remove_abandoned(tmp_path)
        assert list(tmp_path.iterdir()) == [draft]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("is_folder", [False, True])
def test_what_a_killed_process_left_is_removed_by_the_next(is_folder: bool, tmp_path: Path) -> None:
    kept = write_atomic(tmp_path / "kept.part", b"kept")
    files.remove_abandoned_once.cache_clear()  # as in a process that starts
    leave_draft(tmp_path, is_folder=is_folder)
    written = write_atomic(tmp_path / "new.txt", b"new")
    assert sorted(tmp_path.iterdir()) == [kept, written]


def test_the_cache_removes_drafts_each_time(tmp_path: Path) -> None:
    write_arrays(tmp_path / "a", "k", {}, {})
    leave_draft(tmp_path, is_folder=True)
    write_arrays(tmp_path / "a", "k", {"b": 1}, {})
    remove_abandoned(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_without_locks_a_draft_is_removed_after_an_hour(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: Path) -> int:
        raise OSError(f"{path}: no locks")

    monkeypatch.setattr(files, "take_lock", refuse)
    old, new = tmp_path / ".old.part", tmp_path / ".new.part"
    for path in (old, new):
        path.write_text("half")
    os.utime(old, (0, 0))
    with make_draft(tmp_path) as draft:
        remove_abandoned(tmp_path)
        assert sorted(tmp_path.iterdir()) == sorted([new, draft])


def test_a_draft_that_was_removed_before_it_was_locked_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    removed: list[Path] = []

    def remove_first(path: Path) -> int | None:
        if not removed:
            removed.append(path)
            path.unlink()
        return take_lock(path)

    monkeypatch.setattr(files, "take_lock", remove_first)
    with make_draft(tmp_path) as draft:
        assert draft.exists()
        assert draft not in removed
