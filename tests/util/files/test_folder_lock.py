"""A folder's lock holds until its holder is done."""

from __future__ import annotations

import errno
import os
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from fusion_bench.errors import FusionBenchError
from fusion_bench.util.files import lock_folder


def test_read_change_write_loses_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "new" / "folder"
    count = folder / "count"

    def add(_: int) -> None:
        with lock_folder(folder):
            before = int(count.read_text()) if count.exists() else 0
            count.write_text(str(before + 1))

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(add, range(200)))
    assert count.read_text() == "200"
    assert [path.name for path in folder.iterdir()] == ["count"]


def test_who_waits_says_so_where_a_conflict_is_named(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def wait_for_the_lock(conflict: str | None) -> None:
        with lock_folder(tmp_path, conflict):
            pass

    with ThreadPoolExecutor(2) as pool:
        with lock_folder(tmp_path, "not said, as nobody holds it"):
            waiting = [pool.submit(wait_for_the_lock, text) for text in (None, "a pull uses it")]
            while not caplog.messages:
                time.sleep(0.01)
        for each in waiting:
            each.result()
    (message,) = caplog.messages
    assert message.startswith(f"{tmp_path}: a pull uses it")


def test_a_file_in_the_way_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with (
        pytest.raises(FusionBenchError, match="cannot be used"),
        lock_folder(tmp_path / "file"),
    ):
        pass


def test_a_file_system_without_locks_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_handle: int, _operation: int) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr("fcntl.flock", refuse)
    with pytest.raises(FusionBenchError, match="No locks available"), lock_folder(tmp_path):
        pytest.fail("nobody may read and write here")


def test_a_system_without_locks_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fusion_bench.util.files.has_locks", lambda: False)
    with lock_folder(tmp_path), lock_folder(tmp_path):
        pass
