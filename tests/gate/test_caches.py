"""The gate reads the lists themselves where what is stored of them may have come with a change."""

from pathlib import Path

import pytest

from tests.attacks.gate.stored_lists import CACHE, ENVIRONMENT, forge_cache
from tests.attacks.project import EXPERIMENT, GATE
from tests.attacks.runner import run_here
from tests.gate import cases
from tests.gate.cases import renew_baseline
from tests.git_project import commit_all, run_git
from tests.tiny import edit


@pytest.fixture
def root(tmp_path: Path) -> Path:
    cases.make_project(tmp_path)
    renew_baseline(tmp_path)
    commit_all(tmp_path)
    forge_cache(tmp_path, (tmp_path / "datasets/mine/b.trec").read_bytes())
    return tmp_path


def test_a_cache_that_git_does_not_track_is_believed(root: Path) -> None:
    """It was made on this machine: without this, the other tests would show nothing."""
    assert run_here(GATE, root, ENVIRONMENT).code == 0


def test_nor_does_an_update_write_what_it_says(root: Path) -> None:
    commit_all(root, forced=(CACHE,))
    edit(root, EXPERIMENT, "  slices: [local]\n", "")
    update = (*GATE, "--anchor", "--reason", "tried")
    assert run_here(update, root, ENVIRONMENT).code == 0
    values = (root / "reports/baselines/mine.json").read_text()
    assert '"new_mean": 0.5208' in values


def test_the_gate_writes_no_cache_that_git_tracks(root: Path) -> None:
    commit_all(root, forced=(CACHE,))
    run_here(GATE, root, ENVIRONMENT)
    assert run_git(root, "status", "--porcelain", "--", CACHE) == ""
