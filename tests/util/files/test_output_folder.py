"""Outputs are ignored by git where a command made their folder, and nothing else is."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from fusion_bench.errors import FusionBenchError
from fusion_bench.util.files import GITIGNORE, make_output_folder, name_experiment, require_visible


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
