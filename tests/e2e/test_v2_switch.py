"""``gate`` and ``compare`` name the kill switch: off now, or off on one side only."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from fusion_bench.cli import main
from tests import tiny
from tests.gate import cases
from tests.tiny import edit

Capture = pytest.CaptureFixture[str]
SWITCH = "RAG_FUSION_V2_ENABLED"


def gate(capsys: Capture, *arguments: str) -> tuple[dict[str, Any], str]:
    """The record and the page."""
    main(["gate", cases.EXPERIMENT, "--json", *arguments])
    record = json.loads(capsys.readouterr().out)
    main(["gate", cases.EXPERIMENT, *arguments])
    return record, capsys.readouterr().out


def test_the_gate_names_the_switch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.delenv(SWITCH, raising=False)
    monkeypatch.chdir(cases.make_project(tmp_path))
    edit(tmp_path, cases.EXPERIMENT, "live: {runs: [a]}", "live: {runs: [a, b], fusion: rrf_v2}")
    update = ["gate", cases.EXPERIMENT, "--update", "--reason"]
    assert main([*update, "on"]) == 0
    assert SWITCH not in capsys.readouterr().out
    record, page = gate(capsys)
    assert (record["v2_enabled"], record["baseline_v2_enabled"]) == (True, True)
    assert SWITCH not in page
    monkeypatch.setenv(SWITCH, "off")
    record, page = gate(capsys)
    assert (record["v2_enabled"], record["baseline_v2_enabled"]) == (False, True)
    assert f"! {SWITCH} was on for the baseline " in page
    assert f"); {SWITCH} off (baseline: on)\n" in page
    assert main([*update, "off"]) == 0
    assert f"! {SWITCH} is off: rrf_v2 " in capsys.readouterr().out
    record, page = gate(capsys)
    assert (record["v2_enabled"], record["baseline_v2_enabled"]) == (False, False)
    assert f"! {SWITCH} is off: rrf_v2 " in page
    assert f"); {SWITCH} off\n" in page
    monkeypatch.setenv(SWITCH, "on")
    _, page = gate(capsys)
    assert f"! {SWITCH} was on for the candidate " in page
    assert f"); {SWITCH} on (baseline: off)\n" in page


def test_compare_names_the_switch_of_both_reports(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.chdir(tiny.make(tmp_path))
    for value in ("on", "off"):
        monkeypatch.setenv(SWITCH, value)
        assert main(["eval", tiny.EXPERIMENT, "--out", value, "--no-plots"]) == 0
    monkeypatch.delenv(SWITCH)
    capsys.readouterr()
    on, off = "on/report.json", "off/report.json"

    def compared(*files: str) -> tuple[dict[str, bool], str]:
        assert main(["compare", *files, "--json"]) == 0
        record = json.loads(capsys.readouterr().out)[0]["v2_enabled"]
        assert main(["compare", *files]) == 0
        return record, capsys.readouterr().out

    sides, page = compared(on, off)
    assert sides == {"baseline": True, "candidates": False}
    assert f"! {SWITCH} was on for the baseline " in page
    sides, page = compared(off)
    assert sides == {"baseline": False, "candidates": False}
    assert f"! {SWITCH} is off" in page
    sides, page = compared(on)
    assert sides == {"baseline": True, "candidates": True}
    assert SWITCH not in page
