"""Files: written whole or not at all, drafts, what is no ordinary file."""

from __future__ import annotations

import errno
import os
import resource
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from fusion_bench.errors import ConfigError, FusionBenchError
from fusion_bench.io.dataset_cache import write_arrays
from fusion_bench.util import files
from fusion_bench.util.files import (
    IrregularFileError,
    append_whole,
    check_regular,
    make_draft,
    open_atomic,
    open_regular,
    read_regular,
    read_regular_text,
    remove_abandoned,
    remove_on_failure,
    replace_files,
    require_free,
    resolve_path,
    take_lock,
    write_atomic,
)

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


KILLED_OF_DRAFTS = """
import os, signal, sys
from pathlib import Path
from fusion_bench.util.files import make_draft

with make_draft(Path(sys.argv[1]), is_folder=bool(sys.argv[2])) as draft:
    (draft / "half" if draft.is_dir() else draft).write_text("half")
    os.kill(os.getpid(), signal.SIGKILL)
"""


def leave_draft(folder: Path, *, is_folder: bool) -> Path:
    before = set(folder.iterdir())
    command = [sys.executable, "-c", KILLED_OF_DRAFTS, str(folder), "yes" if is_folder else ""]
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


def test_what_was_written_before_a_failure_is_removed(tmp_path: Path) -> None:
    kept, file, folder = (tmp_path / name for name in ("kept", "file", "folder"))
    kept.touch()

    def write_all() -> None:
        with remove_on_failure() as new:
            new += [file, folder, tmp_path / "absent"]
            file.touch()
            folder.mkdir()
            (folder / "inside").touch()
            raise OSError("full")

    with pytest.raises(OSError, match="full"):
        write_all()
    assert list(tmp_path.iterdir()) == [kept]


def test_what_was_written_without_one_stays(tmp_path: Path) -> None:
    with remove_on_failure() as new:
        new.append(tmp_path / "file")
        new[0].touch()
    assert (tmp_path / "file").exists()


def test_a_folder_is_free_where_no_file_is_in_the_way(tmp_path: Path) -> None:
    require_free(tmp_path, ("dataset.yaml",))
    (tmp_path / "dataset.yaml").touch()
    with pytest.raises(ConfigError, match=r"^--save.*dataset\.yaml.*exists:"):
        require_free(tmp_path, ("dataset.yaml",), "--save")
    with pytest.raises(ConfigError, match=r"yaml is a file"):
        require_free(tmp_path / "dataset.yaml" / "below", ())


def test_regular_files_are_read(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes("ü\r\n".encode())
    assert read_regular(path) == "ü\r\n".encode()
    assert read_regular_text(path) == "ü\n"
    check_regular(path)
    check_regular(tmp_path / "absent")
    with pytest.raises(FileNotFoundError):
        open_regular(tmp_path / "absent")


def test_others_say_what_they_are(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    kinds = {pipe: "a named pipe", Path("/dev/null"): "a device", tmp_path: "a folder"}
    for path, kind in kinds.items():
        with pytest.raises(IrregularFileError) as raised:
            read_regular(path)
        assert str(raised.value).startswith(kind)
        assert raised.value.filename == str(path)


def test_links_are_followed_and_those_in_a_circle_stay(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("file")
    (tmp_path / "circle").symlink_to("circle")
    assert resolve_path(tmp_path / "link") == tmp_path.resolve() / "file"
    assert resolve_path(tmp_path / "circle") == tmp_path.resolve() / "circle"
