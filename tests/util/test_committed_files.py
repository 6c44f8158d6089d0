"""What every repository around a file holds of it, whatever was put between them."""

import shutil
from pathlib import Path

import pytest

from fusion_bench.errors import ConfigError
from fusion_bench.util.files import is_untracked, read_committed, read_committed_copies
from tests.git_project import commit_all, run_git


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    path = tmp_path / "project" / "reports" / "baselines" / "a.json"
    path.parent.mkdir(parents=True)
    path.write_text("committed")
    commit_all(tmp_path / "project")
    path.write_text("forged")
    return path


@pytest.mark.parametrize("depth", [0, 1])
@pytest.mark.parametrize("kind", ["folder", "empty file", "file to nowhere"])
def test_a_broken_repository_below_another_is_an_error(kept: Path, depth: int, kind: str) -> None:
    place = kept.parents[depth] / ".git"
    if kind == "folder":
        place.mkdir()
    else:
        place.write_text("" if kind == "empty file" else "gitdir: /nowhere\n")
    with pytest.raises(ConfigError, match=r"not accept it"):
        read_committed(kept, "HEAD")
    assert not is_untracked(kept.parent / "cache")


@pytest.mark.parametrize("depth", [0, 1])
def test_an_empty_repository_below_does_not_hide_the_one_above(kept: Path, depth: int) -> None:
    run_git(kept.parents[depth], "init", "--quiet")
    assert read_committed(kept, "HEAD") == b"committed"
    assert not is_untracked(kept.parent)


@pytest.mark.parametrize("depth", [0, 1])
def test_a_repository_below_that_holds_another_file_is_an_error(kept: Path, depth: int) -> None:
    run_git(kept.parents[depth], "init", "--quiet", "--initial-branch=main")
    commit_all(kept.parents[depth])
    with pytest.raises(ConfigError, match=r"different files"):
        read_committed(kept, "HEAD")
    assert sorted((read_committed_copies(kept, "HEAD") or {}).values()) == [b"committed", b"forged"]


def test_repositories_that_agree_or_do_not_know_the_file_answer(kept: Path) -> None:
    kept.write_text("committed")
    run_git(kept.parent, "init", "--quiet", "--initial-branch=main")
    commit_all(kept.parent)
    assert read_committed(kept, "HEAD") == b"committed"
    other = kept.with_name("b.json")
    other.write_text("b")
    commit_all(kept.parent)
    assert read_committed(other, "HEAD") == b"b"


def test_a_broken_repository_above_a_good_one_is_none(kept: Path, tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    assert read_committed(kept, "HEAD") == b"committed"


def test_replaced_objects_are_ignored(kept: Path) -> None:
    project = kept.parents[2]
    forged = run_git(project, "hash-object", "-w", str(kept))
    blob = run_git(project, "rev-parse", "HEAD:reports/baselines/a.json")
    run_git(project, "replace", blob, forged)
    assert run_git(project, "cat-file", "blob", blob) == "forged"
    assert read_committed(kept, "HEAD") == b"committed"


@pytest.mark.parametrize("moved", ["reports/baselines", "reports"])
@pytest.mark.parametrize("has_repository", [True, False])
def test_a_folder_moved_out_behind_a_link_is_compared(
    kept: Path, tmp_path: Path, moved: str, *, has_repository: bool
) -> None:
    project, outside = kept.parents[2], tmp_path / "outside"
    (project / moved).rename(outside)
    (project / moved).symlink_to(outside)
    if not has_repository:
        assert read_committed(kept, "HEAD") == b"committed"
        return
    commit_all(outside)
    with pytest.raises(ConfigError, match="hold different files"):
        read_committed(kept, "HEAD")


def test_links_to_links_and_links_in_a_circle_are_followed(kept: Path, tmp_path: Path) -> None:
    project = kept.parents[2]
    outside = tmp_path / "outside"
    (project / "reports").rename(outside)
    (project / "reports").symlink_to("../outside")
    (project / "named").symlink_to("reports")
    commit_name = "HEAD"
    assert read_committed(project / "named/baselines/a.json", commit_name) == b"committed"
    (project / "circle").symlink_to("circle")
    assert read_committed(project / "circle/a.json", commit_name) is None


def test_without_git_no_repository_is_asked(kept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (kept.parent / ".git").mkdir()
    monkeypatch.setenv("PATH", str(kept.parent))
    assert read_committed_copies(kept, "HEAD") is None
    shutil.rmtree(kept.parent / ".git")
    with pytest.raises(ConfigError, match="no such commit"):
        read_committed(kept, "HEAD")
