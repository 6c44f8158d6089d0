"""The commands of two pages print what the pages show."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from tests.e2e.test_readme import parse_console, run_command

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("page", "folders", "codes"),
    [
        # try, the first baseline, a regression, an export
        ("start", ("datasets/referee",), [0, 0, 1, 0]),
        ("reference/diagnose", ("datasets/attack", "experiments"), [0]),
    ],
)
def test_the_commands_print_what_is_shown(
    page: str,
    folders: tuple[str, ...],
    codes: list[int],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ignored = shutil.ignore_patterns(".cache*", ".fusion_bench_cache", "rebuild", "games")
    for folder in folders:
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=ignored)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.delenv("RAG_FUSION_V2_ENABLED", raising=False)
    text = (ROOT / "docs" / f"{page}.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```console\n(.*?)```", text, re.DOTALL)
    assert [run_command(*pair) for block in blocks for pair in parse_console(block)] == codes
