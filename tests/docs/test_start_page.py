"""The commands of ``docs/start.md`` run in their order and print what it shows."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from tests.e2e.test_readme import parse_console, run_command

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/start.md").read_text(encoding="utf-8")


def test_the_commands_print_what_is_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ignored = shutil.ignore_patterns(".cache*", ".fusion_bench_cache", "rebuild", "games")
    shutil.copytree(ROOT / "datasets/referee", tmp_path / "datasets/referee", ignore=ignored)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.delenv("RAG_FUSION_V2_ENABLED", raising=False)
    blocks = re.findall(r"```console\n(.*?)```", PAGE, re.DOTALL)
    codes = [run_command(*pair) for block in blocks for pair in parse_console(block)]
    assert codes == [0, 0, 1, 0]  # try, the first baseline, a regression, an export
