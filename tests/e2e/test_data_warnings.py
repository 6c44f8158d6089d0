"""Every command that prints numbers says what speaks against the lists that it read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from fusion_bench.cli import main
from tests import warnings_project
from tests.warnings_project import EXPERIMENT, KEYS, LISTS

Capture = pytest.CaptureFixture[str]
#: A part of each warning's text.
TEXTS = {
    "reversed": "distance seems to be read backwards",
    "rank column": "The rank column of distance opposes its scores",
    "constant lists": "flat gives all documents one score",
    "float32": "trec_eval orders fine otherwise",
    "missing zero": "negative with scores below 0",
}
FILES = [f"{name}=datasets/mine/{name}.trec" for name in LISTS]
BARE = ["--qrels", "datasets/mine/qrels.txt", *FILES]
REPORT = "reports/mine/report.json"
COMMANDS = {
    "eval": ["eval", EXPERIMENT, "--no-plots"],
    "tune": ["tune", EXPERIMENT, "--no-plots"],
    "gate": ["gate", EXPERIMENT],
    "compare reports": ["compare", REPORT, "--candidate", "sum"],
    "compare two reports": ["compare", REPORT, REPORT, "--candidate", "sum"],
    "compare": ["compare", *BARE],
    "try": ["try", *BARE, "--no-plots"],
}

#: The page that a command writes.
PAGES = {
    "eval": "reports/mine/report.md",
    "tune": "reports/mine/tuning/tuning.md",
    "gate": "reports/mine/gate.md",
    "try": "reports/try/report.md",
}


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = warnings_project.make(tmp_path_factory.mktemp("project"))
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(root)
        assert main(["eval", EXPERIMENT, "--no-plots"]) == 0
        assert main(["gate", EXPERIMENT, "--update", "--reason", "first"]) == 0
    return root


def run(project: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture, *words: str) -> str:
    monkeypatch.chdir(project)
    capsys.readouterr()
    assert main([*words]) == 0
    return capsys.readouterr().out


@pytest.mark.parametrize("command", COMMANDS)
def test_the_terminal_and_the_written_page_say_it(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture, command: str
) -> None:
    pages = [run(project, monkeypatch, capsys, *COMMANDS[command])]
    if command in PAGES:
        pages.append((project / PAGES[command]).read_text(encoding="utf-8"))
    # Single lists are not summed, so nothing is below an absent document.
    keys = KEYS - {"missing zero"} if command in {"compare", "try"} else KEYS
    for page in pages:
        plain = " ".join(page.replace("\\", "").split())
        assert [TEXTS[key] for key in keys if TEXTS[key] not in plain] == []
        assert "flat seems to be" not in plain, "the tie rule orders it"


@pytest.mark.parametrize("command", ["tune", "gate", "compare reports", "compare two reports"])
def test_json_holds_key_and_text(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture, command: str
) -> None:
    record: Any = json.loads(run(project, monkeypatch, capsys, *COMMANDS[command], "--json"))
    if command == "gate":
        warnings = record["data_warnings"]
    else:
        warnings = record["data"]["warnings"] if command == "tune" else record[0]["warnings"]
    texts = {warning["key"]: warning["text"] for warning in warnings}
    assert [key for key in TEXTS if TEXTS[key] not in texts[key]] == []
