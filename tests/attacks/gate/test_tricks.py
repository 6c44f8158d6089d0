"""No trick makes the gate pass a planted regression."""

import shutil
from pathlib import Path

import pytest

from tests.attacks.gate.page import PAGE, TRICKS, render_csv, render_page
from tests.attacks.gate.trick import Trick, make_project
from tests.attacks.runner import run_here

ALL = [trick for tricks in TRICKS.values() for trick in tricks]


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_project(tmp_path_factory.mktemp("planted"))


@pytest.mark.parametrize("trick", ALL, ids=str)
def test_no_trick_passes(
    trick: Trick, planted: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("RAG_FUSION_V2_ENABLED", "GITHUB_ACTIONS"):
        monkeypatch.delenv(name, raising=False)
    root = Path(shutil.copytree(planted, tmp_path / "project"))
    trick.edit(root)
    outcome = run_here(trick.arguments, root, trick.environment)
    assert trick.code in {1, 2, 3}
    assert outcome.code == trick.code, outcome
    assert "Traceback" not in outcome.err
    for part in trick.says:
        assert part in outcome.out + outcome.err, outcome


def test_there_are_seventy_and_the_page_has_them_all() -> None:
    assert len({trick.name for trick in ALL}) == len(ALL) >= 70
    assert PAGE.read_text(encoding="utf-8") == render_page()
    assert PAGE.with_suffix(".csv").read_text(encoding="utf-8") == render_csv()
