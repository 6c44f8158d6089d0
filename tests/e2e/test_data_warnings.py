"""Every command that prints numbers says what speaks against them."""

import inspect
import json
import re
import sys
from collections import Counter
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

import fusion_bench
from fusion_bench.checks.collection_warnings import (
    find_data_warnings,
    find_grade_warnings,
    warn_near_duplicates,
    warn_settings,
    warn_synthetic,
    warn_unjudged,
)
from fusion_bench.checks.judges import find_judge_warnings
from fusion_bench.cli import main
from fusion_bench.evaluation.recommendation import find_preference
from fusion_bench.report.evaluation_page import build_page
from fusion_bench.stats.comparison_family import find_first_group
from tests import tiny, warnings_project
from tests.gate import cases
from tests.tiny import edit
from tests.warnings_project import EXPERIMENT, KEYS, LISTS

Capture = pytest.CaptureFixture[str]
#: A part of each warning's text.
TEXTS = {
    "reversed": "distance seems to be read backwards",
    "rank column": "The rank column of distance opposes its scores",
    "constant lists": "flat gives all documents one score",
    "float32": "trec_eval orders fine otherwise",
    "missing zero": "scores fall below 0 in negative",
}
FILES = [f"{name}=datasets/mine/{name}.trec" for name in LISTS]
BARE = ["--qrels", "datasets/mine/qrels.txt", *FILES]
REPORT = "reports/mine/report.json"
#: The lists are suspect, which is what these tests are about.
ALLOWED = ["--allow-suspect"]
COMMANDS = {
    "eval": ["eval", EXPERIMENT, "--no-plots", *ALLOWED],
    "tune": ["tune", EXPERIMENT, "--no-plots", *ALLOWED],
    "gate": ["gate", EXPERIMENT, *ALLOWED],
    "compare reports": ["compare", REPORT, "--candidate", "sum"],
    "compare two reports": ["compare", REPORT, REPORT, "--candidate", "sum"],
    "compare": ["compare", *BARE, *ALLOWED],
    "try": ["try", *BARE, "--no-plots", *ALLOWED],
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
        assert main(["eval", EXPERIMENT, "--no-plots", *ALLOWED]) == 0
        assert main(["gate", EXPERIMENT, "--update", "--reason", "first", *ALLOWED]) == 0
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
    pages = [run(project, monkeypatch, capsys, *COMMANDS[command], "-v")]
    if command in PAGES:
        pages.append((project / PAGES[command]).read_text(encoding="utf-8"))
    # Single lists are not summed, so nothing is below an absent document.
    keys = KEYS - {"missing zero"} if command in {"compare", "try"} else KEYS
    for page in pages:
        plain = " ".join(page.replace("\\", "").split())
        assert [TEXTS[key] for key in keys if TEXTS[key] not in plain] == []
        assert "flat seems" not in plain, "the tie rule orders it"


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
    evidence = {warning["key"]: warning["evidence"] for warning in warnings}
    assert evidence["reversed"]["mean_as_read"] < evidence["reversed"]["mean_backwards"]
    assert evidence["rank column"]["name"] == "distance"
    assert evidence["missing zero"]["lowest_scores"]["negative"] < 0


FINDERS = (
    *(find_judge_warnings, find_data_warnings, find_grade_warnings, warn_near_duplicates),
    *(warn_synthetic, warn_unjudged, warn_settings, find_preference, find_first_group, build_page),
)


@pytest.mark.parametrize("command", ["eval", "tune", "gate", "try", "compare"])
def test_each_finder_runs_once_a_command(
    project: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    monkeypatch.chdir(project)
    names = {inspect.unwrap(finder).__code__: finder.__name__ for finder in FINDERS}
    frames: set[FrameType] = set()  # a generator is entered once a value

    def note(frame: FrameType, event: str, _argument: object) -> None:
        if event == "call" and frame.f_code in names:
            frames.add(frame)

    sys.setprofile(note)
    try:
        assert main(COMMANDS[command]) == 0
    finally:
        sys.setprofile(None)
    counts = Counter(names[frame.f_code] for frame in frames)
    assert {"find_judge_warnings", "find_data_warnings"} <= counts.keys()
    assert set(counts.values()) == {1}


# ── weights by query type on a dataset without types: every command that uses them says so


RULE = "weights-by-type-untyped"
TYPED = {
    "runs": ["a", "b"],
    "weights_by_type": {
        "local": {"keyword": 0.5, "semantic": 0.5},
        "hybrid": {"keyword": 0.4, "semantic": 0.6},
    },
}


@pytest.fixture
def untyped(mine: Path) -> Path:
    queries = mine / "datasets/mine/queries.jsonl"
    queries.write_text(re.sub(r'"type": "\w+", ', "", queries.read_text()))
    edit(mine, cases.EXPERIMENT, "live: {runs: [a]}", f"live: {TYPED}")
    edit(mine, cases.EXPERIMENT, "  slices: [local]\n", "")
    return mine


@pytest.mark.usefixtures("untyped")
@pytest.mark.parametrize(
    "arguments",
    [
        ["eval", cases.EXPERIMENT, "--no-plots"],
        ["gate", cases.EXPERIMENT, "--update", "--reason", "first"],
        ["gate", cases.EXPERIMENT],
    ],
)
def test_it_is_said_where_it_is_felt(arguments: list[str], mine: Path, capsys: Capture) -> None:
    if arguments == ["gate", cases.EXPERIMENT]:
        cases.renew_baseline(mine)
    assert main(arguments) == 0
    assert re.search(rf"^! lint:? {RULE}", capsys.readouterr().out, re.MULTILINE)


def test_python_says_it(untyped: Path) -> None:
    systems = {"plain": {"runs": ["a", "b"]}, "typed": TYPED}
    data = str(untyped / "datasets/mine/dataset.yaml")
    compared = fusion_bench.compare(data, None, systems, "RR@10")
    assert compared.warnings[0].startswith(f"lint {RULE}: ")
    plain = fusion_bench.compare(data, None, {"a": "a", "b": "b"}, "RR@10")
    assert not any(RULE in text for text in plain.warnings)


# ── ``gate`` and ``compare`` name the kill switch: off now, or off on one side only


SWITCH = "RAG_FUSION_V2_ENABLED"


def run_gate(capsys: Capture, *arguments: str) -> tuple[dict[str, Any], str]:
    main(["gate", cases.EXPERIMENT, "--json", *arguments])
    record = json.loads(capsys.readouterr().out)
    main(["gate", cases.EXPERIMENT, "-v", *arguments])
    return record, capsys.readouterr().out


def test_the_gate_names_the_switch(
    mine: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    edit(mine, cases.EXPERIMENT, "live: {runs: [a]}", "live: {runs: [a, b], fusion: rrf_v2}")
    update = ["gate", cases.EXPERIMENT, "--update", "--reason"]
    assert main([*update, "on"]) == 0
    assert SWITCH not in capsys.readouterr().out
    record, page = run_gate(capsys)
    assert (record["v2_enabled"], record["baseline_v2_enabled"]) == (True, True)
    assert SWITCH not in page
    monkeypatch.setenv(SWITCH, "off")
    record, page = run_gate(capsys)
    assert (record["v2_enabled"], record["baseline_v2_enabled"]) == (False, True)
    assert "for the baseline " in page
    assert f"); {SWITCH} off (baseline: on)\n" in page
    assert main([*update, "off"]) == 0
    assert f"! {SWITCH} is off" in capsys.readouterr().out
    record, page = run_gate(capsys)
    assert (record["v2_enabled"], record["baseline_v2_enabled"]) == (False, False)
    assert f"! {SWITCH} is off" in page
    assert f"); {SWITCH} off\n" in page
    monkeypatch.setenv(SWITCH, "on")
    _, page = run_gate(capsys)
    assert "for the candidate " in page
    assert f"); {SWITCH} on (baseline: off)\n" in page


@pytest.mark.usefixtures("root")
def test_compare_names_the_switch_of_both_reports(
    monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    for value in ("on", "off"):
        monkeypatch.setenv(SWITCH, value)
        assert main(["eval", tiny.EXPERIMENT, "--out", value, "--no-plots"]) == 0
    monkeypatch.delenv(SWITCH)
    capsys.readouterr()
    on, off = "on/report.json", "off/report.json"

    def compared(*files: str) -> tuple[dict[str, bool], str]:
        assert main(["compare", *files, "--json"]) == 0
        record = json.loads(capsys.readouterr().out)[0]["v2_enabled"]
        assert main(["compare", *files, "-v"]) == 0
        return record, capsys.readouterr().out

    sides, page = compared(on, off)
    assert sides == {"baseline": True, "candidates": False}
    assert "for the baseline " in page
    sides, page = compared(off)
    assert sides == {"baseline": False, "candidates": False}
    assert f"! {SWITCH} is off" in page
    sides, page = compared(on)
    assert sides == {"baseline": True, "candidates": True}
    assert SWITCH not in page
