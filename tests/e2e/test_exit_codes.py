"""One meaning a code: the page, the help and the commands agree."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from fusion_bench.cli import main
from fusion_bench.cli._exit_codes import MEANINGS, ExitCode
from tests import tiny
from tests.gate import cases
from tests.tiny import edit

Capture = pytest.CaptureFixture[str]
DOCS = Path(__file__).parent.parent.parent / "docs"


@pytest.mark.parametrize("page", ["exit-codes.md", "agents.md"])
def test_the_pages_have_a_row_for_each_code(page: str) -> None:
    text = (DOCS / page).read_text(encoding="utf-8")
    rows = re.findall(r"^\| (\d+) \|", text, re.MULTILINE)
    assert [int(code) for code in rows] == [code.value for code in MEANINGS]


def help_codes(capsys: Capture, *command: str) -> list[int]:
    assert main([*command, "--help"]) == 0
    text = " ".join(capsys.readouterr().out.split())
    return [int(code) for code in re.findall(r"(?:: |, )(\d+) \w", text.split("Exit codes")[1])]


def test_the_help_lists_the_codes_of_the_page(capsys: Capture) -> None:
    assert help_codes(capsys) == [code.value for code in MEANINGS]
    page = (DOCS / "exit-codes.md").read_text(encoding="utf-8")
    for command in ("gate", "rerank"):
        cell = rf"(?:all|[^|]*`{command}`[^|]*)"
        rows = re.findall(rf"^\| (\d+) \|[^|]*\| {cell} \|", page, re.MULTILINE)
        assert help_codes(capsys, command) == [int(code) for code in rows]


def test_the_gate_uses_each_code_for_its_meaning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(cases.make_project(tmp_path))
    gate = ["gate", cases.EXPERIMENT]
    assert main(gate) == ExitCode.FAILED
    update = [*gate, "--update", "--reason"]
    assert main([*update, "first"]) == ExitCode.DONE
    assert main(gate) == ExitCode.DONE
    edit(tmp_path, cases.EXPERIMENT, "live: {runs: [a]}", "live: {runs: [b]}")
    assert main(gate) == ExitCode.REGRESSION
    assert main([*update, "worse"]) == ExitCode.FAILED
    assert main([*gate, "--anchor", "--reason", "worse, and written"]) == ExitCode.DONE
    assert main([*gate, "--no-such-option"]) == ExitCode.FAILED


def test_bad_input_fails_everywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tiny.make(tmp_path))
    commands = ["eval", "tune", "gate", "dataset show", "compare", "fuse", "explain", "rerank"]
    commands += ["diagnose", "policies"]
    assert {main([*command.split(), "absent.yaml"]) for command in commands} == {ExitCode.FAILED}
