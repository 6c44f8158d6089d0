"""Files: written whole or not at all, drafts, what is no ordinary file."""

import errno
import os
import resource
import shutil
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from fusion_bench.errors import ConfigError, FusionBenchError
from fusion_bench.gate.update import require_visible
from fusion_bench.io.dataset_cache import write_arrays
from fusion_bench.util import files
from fusion_bench.util.files import (
    GITIGNORE,
    IrregularFileError,
    append_whole,
    check_regular,
    is_untracked,
    lock_folder,
    make_draft,
    make_output_folder,
    name_experiment,
    open_atomic,
    open_regular,
    read_committed,
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
from tests.git_project import commit_all, run_git

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


def test_killed_processes_and_full_disks_leave_what_was_there(tmp_path: Path) -> None:
    path = write_atomic(tmp_path / "a.txt", b"old")
    assert in_a_process_of_its_own(KILLED, path).returncode == -signal.SIGKILL
    assert path.read_bytes() == b"old"
    said = in_a_process_of_its_own(FULL, path).stdout
    assert said.startswith(f"{path}: ")
    assert "File too large" in said
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_an_error_while_writing_or_a_folder_in_its_place_leaves_no_draft(tmp_path: Path) -> None:
    def interrupted() -> None:
        with open_atomic(tmp_path / "a.txt") as file:
            file.write(b"half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert list(tmp_path.iterdir()) == []
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


def test_what_was_written_without_a_failure_or_a_file_in_the_way_stays(tmp_path: Path) -> None:
    with remove_on_failure() as new:
        new.append(tmp_path / "file")
        new[0].touch()
    assert (tmp_path / "file").exists()
    require_free(tmp_path, ("dataset.yaml",))
    (tmp_path / "dataset.yaml").touch()
    with pytest.raises(ConfigError, match=r"^--save.*dataset\.yaml.*exists:"):
        require_free(tmp_path, ("dataset.yaml",), "--save")
    with pytest.raises(ConfigError, match=r"yaml is a file"):
        require_free(tmp_path / "dataset.yaml" / "below", ())


def test_regular_files_are_read_and_links_followed(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes("ü\r\n".encode())
    assert read_regular(path) == "ü\r\n".encode()
    assert read_regular_text(path) == "ü\n"
    check_regular(path)
    check_regular(tmp_path / "absent")
    with pytest.raises(FileNotFoundError):
        open_regular(tmp_path / "absent")
    (tmp_path / "link").symlink_to("file")
    (tmp_path / "circle").symlink_to("circle")
    assert resolve_path(tmp_path / "link") == tmp_path.resolve() / "file"
    assert resolve_path(tmp_path / "circle") == tmp_path.resolve() / "circle"


def test_others_say_what_they_are(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    kinds = {pipe: "a named pipe", Path("/dev/null"): "a device", tmp_path: "a folder"}
    for path, kind in kinds.items():
        with pytest.raises(IrregularFileError) as raised:
            read_regular(path)
        assert str(raised.value).startswith(kind)
        assert raised.value.filename == str(path)


# ── folders: locks, git, where outputs go


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


def test_locks_that_cannot_be_had(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    with (
        pytest.raises(FusionBenchError, match="cannot be used"),
        lock_folder(tmp_path / "file"),
    ):
        pass

    def refuse(_handle: int, _operation: int) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr("fcntl.flock", refuse)
    with pytest.raises(FusionBenchError, match="No locks available"), lock_folder(tmp_path):
        pytest.fail("nobody may read and write here")


def test_one_alone_holds_a_lock_where_there_are_locks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fusion_bench.util.files.has_locks", lambda: False)
    with lock_folder(tmp_path), lock_folder(tmp_path):
        pass
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


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / "a.txt").write_text("first")
    (tmp_path / "made").mkdir()
    (tmp_path / ".gitignore").write_text("made\n")
    commit_all(tmp_path)
    (tmp_path / "made" / "b.txt").write_text("made")
    return tmp_path


def test_a_folder_is_untracked_where_git_says_so(repository: Path) -> None:
    assert is_untracked(repository / "made")
    assert is_untracked(repository / "not there")
    assert not is_untracked(repository / "kept")
    assert not is_untracked(repository)
    (repository / "link").symlink_to("kept")
    assert not is_untracked(repository / "link")
    run_git(repository, "add", "--force", "made/b.txt")
    assert not is_untracked(repository / "made")
    assert is_untracked(repository / "k*")
    assert not is_untracked(repository / "KEPT")


def test_without_an_answer_nothing_is_untracked(
    repository: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert not is_untracked(tmp_path_factory.mktemp("no repository"))
    (repository / ".git" / "index").write_bytes(b"broken")
    assert not is_untracked(repository / "made")
    monkeypatch.setenv("PATH", str(repository))
    assert not is_untracked(repository / "made")


def test_variables_of_a_hook_name_no_other_repository(
    repository: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = tmp_path_factory.mktemp("other")
    commit_all(other)
    monkeypatch.setenv("GIT_DIR", str(other / ".git"))
    monkeypatch.setenv("GIT_LITERAL_PATHSPECS", "1")
    assert not is_untracked(repository / "kept")
    assert read_committed(repository / "kept" / "a.txt", "HEAD") == b"first"


def test_a_committed_bare_repository_is_not_asked(repository: Path) -> None:
    """git takes any folder with HEAD, objects and refs for a repository, with its settings."""
    bare = repository / "kept"
    for name in ("HEAD", "config"):
        shutil.copy(repository / ".git" / name, bare / name)
    for name in ("objects", "refs"):
        shutil.copytree(repository / ".git" / name, bare / name)
    with (bare / "config").open("a") as file:
        file.write("[core]\n\tbare = true\n")
    (bare / "cache").mkdir()
    (bare / "cache" / "x").write_text("x")
    commit_all(repository, forced=("kept/cache/x",))
    assert not is_untracked(bare / "cache")


def test_what_a_file_held_is_read(repository: Path) -> None:
    path = repository / "kept" / "a.txt"
    path.write_text("second")
    assert read_committed(path, "main") == b"first"
    commit_all(repository)
    assert read_committed(path, "HEAD") == b"second"
    assert read_committed(path, "HEAD~1") == b"first"
    assert read_committed(repository / "made" / "b.txt", "HEAD") is None
    path.unlink()
    path.symlink_to("../made/b.txt")
    commit_all(repository)
    assert read_committed(path, "HEAD") == b"../made/b.txt"


@pytest.mark.parametrize("commit", ["nowhere", "--help", "", "HEAD~9", "main\0"])
def test_an_unknown_commit_is_an_error(repository: Path, commit: str) -> None:
    with pytest.raises(ConfigError, match=r"^--base .*such commit"):
        read_committed(repository / "kept" / "a.txt", commit)


def test_a_file_of_no_repository_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no such commit"):
        read_committed(tmp_path / "a.txt", "HEAD")


def is_ignored(folder: Path) -> bool:
    return (folder / ".gitignore").exists()


def test_a_new_folder_is_ignored_and_git_sees_nothing_of_it(tmp_path: Path) -> None:
    folder = make_output_folder(tmp_path / "reports/mine")
    assert (folder / ".gitignore").read_text() == GITIGNORE
    assert not is_ignored(tmp_path / "reports")
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    (make_output_folder(tmp_path / "reports/mine") / "gate.json").write_text("{}")
    (tmp_path / "reports/baselines").mkdir()
    (tmp_path / "reports/baselines/mine.json").write_text("{}")
    status = ["git", "status", "--porcelain", "-uall"]
    seen = subprocess.run(status, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert seen.stdout == "?? reports/baselines/mine.json\n"


def test_what_was_there_stays_as_it_is(tmp_path: Path) -> None:
    assert not is_ignored(make_output_folder(tmp_path))
    folder = make_output_folder(tmp_path / "new")
    (folder / ".gitignore").unlink()
    assert not is_ignored(make_output_folder(folder))
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match="exists"):
        make_output_folder(tmp_path / "file")


def test_a_folder_that_only_holds_ignored_ones_is_ignored(tmp_path: Path) -> None:
    parent = make_output_folder(tmp_path / "reports/mine/tuning").parent
    assert not is_ignored(parent)
    assert is_ignored(make_output_folder(parent))
    other = make_output_folder(tmp_path / "reports/other/tuning").parent
    (other / "notes.txt").write_text("mine")
    assert not is_ignored(make_output_folder(other))


@pytest.mark.parametrize("name", ["reports", "baselines", "reports/baselines", "x/.."])
def test_no_folder_of_baselines_is_ignored(tmp_path: Path, name: str) -> None:
    assert not is_ignored(make_output_folder(tmp_path / name))


def test_committed_files_are_not_below_ignored_folders(tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    assert not is_ignored(make_output_folder(kept, committed=[kept / "ci/old.json"]))
    assert is_ignored(make_output_folder(kept / "out", committed=[kept / "ci/old.json"]))
    folder = make_output_folder(tmp_path / "out")
    require_visible(tmp_path / "mine.json")
    for path in (folder / "mine.json", folder / "deeper/mine.json"):
        with pytest.raises(FusionBenchError, match="keeps git"):
            require_visible(path)
    (folder / ".gitignore").write_text("*.png\n")
    require_visible(folder / "mine.json")


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("experiments/mine.yaml", "mine"),
        ("mine/experiment.yaml", "mine"),
        ("experiments/...yaml", "experiment"),
        ("/experiment.yaml", "experiment"),
    ],
)
def test_an_experiment_has_the_name_of_its_file_or_folder(path: str, name: str) -> None:
    assert name_experiment(Path(path)) == name
