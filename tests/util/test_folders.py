"""Folders: locks, git, where outputs go."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from fusion_bench.errors import ConfigError, FusionBenchError
from fusion_bench.gate.update import require_visible
from fusion_bench.util.files import (
    GITIGNORE,
    is_untracked,
    lock_folder,
    make_output_folder,
    name_experiment,
    read_committed,
    take_lock,
)
from tests.git_project import commit_all, run_git


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


def test_the_name_is_no_pattern_and_its_case_does_not_matter(repository: Path) -> None:
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
    with pytest.raises(ConfigError, match=r"^--base .*no such commit"):
        read_committed(repository / "kept" / "a.txt", commit)


def test_a_file_of_no_repository_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no such commit"):
        read_committed(tmp_path / "a.txt", "HEAD")


def is_ignored(folder: Path) -> bool:
    return (folder / ".gitignore").exists()


def test_a_new_folder_is_ignored(tmp_path: Path) -> None:
    folder = make_output_folder(tmp_path / "reports/mine")
    assert (folder / ".gitignore").read_text() == GITIGNORE
    assert not is_ignored(tmp_path / "reports")


def test_git_sees_nothing_of_it(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    (make_output_folder(tmp_path / "reports/mine") / "gate.json").write_text("{}")
    (tmp_path / "reports/baselines").mkdir()
    (tmp_path / "reports/baselines/mine.json").write_text("{}")
    status = ["git", "status", "--porcelain", "-uall"]
    seen = subprocess.run(status, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert seen.stdout == "?? reports/baselines/mine.json\n"


def test_a_folder_that_exists_stays_as_it_is(tmp_path: Path) -> None:
    assert not is_ignored(make_output_folder(tmp_path))
    folder = make_output_folder(tmp_path / "new")
    (folder / ".gitignore").unlink()
    assert not is_ignored(make_output_folder(folder))


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


def test_a_folder_that_holds_a_committed_file_is_not_ignored(tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    assert not is_ignored(make_output_folder(kept, committed=[kept / "ci/old.json"]))
    assert is_ignored(make_output_folder(kept / "out", committed=[kept / "ci/old.json"]))


def test_a_file_in_the_way_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match="exists"):
        make_output_folder(tmp_path / "file")


def test_no_committed_file_goes_below_an_ignored_folder(tmp_path: Path) -> None:
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
