"""Weights by query type on a dataset without types: every command that uses them says so."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import fusion_bench
from fusion_bench.cli import main
from tests.gate import cases
from tests.tiny import edit

Capture = pytest.CaptureFixture[str]
WARNING = "lint weights-by-type-untyped: mine has no query types"
TYPED = {
    "runs": ["a", "b"],
    "weights_by_type": {
        "local": {"keyword": 0.5, "semantic": 0.5},
        "hybrid": {"keyword": 0.4, "semantic": 0.6},
    },
}


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(cases.make_project(tmp_path))
    queries = tmp_path / "datasets/mine/queries.jsonl"
    queries.write_text(re.sub(r'"type": "\w+", ', "", queries.read_text()))
    edit(tmp_path, cases.EXPERIMENT, "live: {runs: [a]}", f"live: {TYPED}")
    edit(tmp_path, cases.EXPERIMENT, "  slices: [local]\n", "")
    return tmp_path


@pytest.mark.usefixtures("root")
@pytest.mark.parametrize(
    "arguments",
    [
        ["eval", cases.EXPERIMENT, "--no-plots"],
        ["gate", cases.EXPERIMENT, "--update", "--reason", "first"],
    ],
)
def test_it_is_said_where_it_is_felt(arguments: list[str], capsys: Capture) -> None:
    assert main(arguments) == 0
    assert f"! {WARNING}" in capsys.readouterr().out


@pytest.mark.usefixtures("root")
def test_the_gate_says_it_too(capsys: Capture) -> None:
    assert main(["gate", cases.EXPERIMENT, "--update", "--reason", "first"]) == 0
    capsys.readouterr()
    assert main(["gate", cases.EXPERIMENT]) == 0
    assert f"! {WARNING}" in capsys.readouterr().out


def test_python_says_it(root: Path) -> None:
    systems = {"plain": {"runs": ["a", "b"]}, "typed": TYPED}
    data = str(root / "datasets/mine/dataset.yaml")
    compared = fusion_bench.compare(data, None, systems, "RR@10")
    assert compared.warnings[0].startswith(WARNING)
    plain = fusion_bench.compare(data, None, {"a": "a", "b": "b"}, "RR@10")
    assert not any(WARNING in text for text in plain.warnings)
