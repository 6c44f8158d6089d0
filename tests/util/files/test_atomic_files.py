"""A file is there whole, or it is what it was before."""

from __future__ import annotations

import errno
import os
import resource
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from fusion_bench.errors import FusionBenchError
from fusion_bench.util.files import append_whole, open_atomic, replace_files, write_atomic

KILLED = """
import os, signal, sys
from pathlib import Path
from fusion_bench.util.files import open_atomic

with open_atomic(Path(sys.argv[1])) as file:
    file.write(b"half")
    file.flush()
    os.kill(os.getpid(), signal.SIGKILL)
"""
FULL = """
import resource, sys
from pathlib import Path
from fusion_bench.errors import FusionBenchError
from fusion_bench.util.files import write_atomic

resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
try:
    write_atomic(Path(sys.argv[1]), b"new" * 1000)
except FusionBenchError as error:
    print(error)
"""

FULL_SET = """
import resource, sys
from pathlib import Path
from fusion_bench.util.files import replace_files

resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
try:
    replace_files(Path(sys.argv[1]), {"report.json": b"new", "report.md": b"new" * 1000})
except OSError as error:
    print(f"{error.filename}: {error.strerror}")
"""


def in_a_process_of_its_own(code: str, path: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", code, str(path)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_it_replaces_what_was_there_and_makes_its_folder(tmp_path: Path) -> None:
    path = tmp_path / "made" / "here.txt"
    for data in (b"one", b"another"):
        assert write_atomic(path, data) == path
        assert path.read_bytes() == data
    assert list(path.parent.iterdir()) == [path]


def test_a_killed_process_leaves_what_was_there(tmp_path: Path) -> None:
    path = write_atomic(tmp_path / "a.txt", b"old")
    assert in_a_process_of_its_own(KILLED, path).returncode == -signal.SIGKILL
    assert path.read_bytes() == b"old"


def test_a_full_disk_leaves_what_was_there_and_no_draft(tmp_path: Path) -> None:
    path = write_atomic(tmp_path / "a.txt", b"old")
    said = in_a_process_of_its_own(FULL, path).stdout
    assert said.startswith(f"{path}: ")
    assert "File too large" in said
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_an_error_while_writing_leaves_no_draft(tmp_path: Path) -> None:
    def interrupted() -> None:
        with open_atomic(tmp_path / "a.txt") as file:
            file.write(b"half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert list(tmp_path.iterdir()) == []


def test_a_folder_in_its_place(tmp_path: Path) -> None:
    with pytest.raises(FusionBenchError, match=r": Is a directory$"):
        write_atomic(tmp_path, b"new")
    (tmp_path / "file").write_bytes(b"old")
    with pytest.raises(FusionBenchError, match=r": File exists$"):
        write_atomic(tmp_path / "file" / "below", b"new")


def test_a_set_of_files_has_its_record_last(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = {"report.json": b"old", "report.md": b"old"}
    new = {"report.json": b"new", "report.md": b"new", "figure.png": b"new"}
    replace_files(tmp_path, old)
    states = []
    replace = os.replace

    def note_state(source: Path, target: Path) -> None:
        states.append(read_texts(tmp_path))
        replace(source, target)

    monkeypatch.setattr(os, "replace", note_state)
    paths = replace_files(tmp_path, new)
    assert paths == [tmp_path / name for name in new]
    assert states == [
        {"report.md": b"old"},
        {"report.md": b"new"},
        {"report.md": b"new", "figure.png": b"new"},
    ]
    assert read_texts(tmp_path) == new


@pytest.mark.parametrize("links", [True, False])
@pytest.mark.parametrize("old", [{"report.json": b"old", "report.md": b"old"}, {}])
@pytest.mark.parametrize("failing", range(3))
def test_a_set_whose_files_cannot_all_be_replaced_is_what_it_was(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    failing: int,
    old: dict[str, bytes],
    *,
    links: bool,
) -> None:
    replace_files(tmp_path, old or {"none.json": b""})
    before = read_texts(tmp_path)
    replace, number = os.replace, iter(range(99))

    def fail_once(source: Path, target: Path) -> None:
        if next(number) == failing:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(source))
        replace(source, target)

    def refuse(source: Path, _target: Path) -> None:
        raise OSError(errno.EPERM if source.exists() else errno.ENOENT, "no second names")

    monkeypatch.setattr(os, "replace", fail_once)
    if not links:
        monkeypatch.setattr(os, "link", refuse)
    names = ("report.json", "report.md", "figure.png")
    with pytest.raises(OSError, match="No space") as caught:
        replace_files(tmp_path, dict.fromkeys(names, b"new"))
    assert caught.value.filename == str(tmp_path / (*names[1:], names[0])[failing])
    assert read_texts(tmp_path) == before
    assert [path.name for path in tmp_path.iterdir() if path.is_dir()] == []


def read_texts(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


def test_a_set_that_cannot_be_written_leaves_the_old_one(tmp_path: Path) -> None:
    old = {"report.json": b"old", "report.md": b"old"}
    replace_files(tmp_path, old)
    (tmp_path / "figure.png").mkdir()
    with pytest.raises(IsADirectoryError) as caught:
        replace_files(tmp_path, {**old, "figure.png": b"new"})
    assert caught.value.filename == str(tmp_path / "figure.png")
    full = in_a_process_of_its_own(FULL_SET, tmp_path)
    assert full.stdout == f"{tmp_path / 'report.md'}: File too large\n"
    assert read_texts(tmp_path) == old


def test_what_cannot_be_appended_whole_leaves_the_file_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    append_whole(path, b"first\n")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10, limits[1]))
    try:
        with pytest.raises(FusionBenchError, match="File too large"):
            append_whole(path, b"second\n")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, handler)
    assert path.read_bytes() == b"first\n"
    append_whole(path, b"second\n")
    assert path.read_bytes() == b"first\nsecond\n"
