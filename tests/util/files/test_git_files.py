from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from fusion_bench.errors import ConfigError
from fusion_bench.util.files import is_untracked, read_committed
from tests.git_project import commit_all, run_git


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
