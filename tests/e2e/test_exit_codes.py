"""Errors: one line, one exit code, one JSON document."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast, get_args

import pytest

from fusion_bench.cli import main
from fusion_bench.cli.application.app import FOLDER
from fusion_bench.cli.application.console import locate_error
from fusion_bench.cli.application.exit_codes import (
    COMMON,
    MEANINGS,
    ExitCode,
)
from fusion_bench.errors import DataCheckError, FusionBenchError
from fusion_bench.experiment.settings import GatePolicy
from fusion_bench.gate.comparison import decide_exit_code
from fusion_bench.gate.verdict import CheckResult, CheckStatus, find_blocking
from fusion_bench.report.tuning_texts import Kind
from fusion_bench.stats.comparison import Answer
from tests.commands import leaf_commands, options_of
from tests.gate import cases
from tests.tiny import EXPERIMENT

Capture = pytest.CaptureFixture[str]
PAGE = (Path(__file__).parents[2] / "docs/reference/exit-codes.md").read_text(encoding="utf-8")
COMMANDS = sorted(file.stem for file in FOLDER.glob("[a-z]*.py"))


def test_the_page_has_a_row_for_each_code_that_begins_with_its_meaning() -> None:
    rows = re.findall(r"^\| (\d+) \| ([^|]*) \|", PAGE, re.MULTILINE)
    assert [int(code) for code, _ in rows] == [code.value for code in MEANINGS]
    assert all(text.startswith(MEANINGS[ExitCode(int(code))]) for code, text in rows)


def help_codes(capsys: Capture, *command: str) -> list[int]:
    assert main([*command, "--help"]) == 0
    text = " ".join(capsys.readouterr().out.split())
    return [int(code) for code in re.findall(r"(?:: |, )(\d+) \w", text.split("Exit codes")[1])]


def page_codes(command: str) -> list[int]:
    rows = re.findall(rf"^\| (\d+) \|[^|]*\| (?:all|[^|]*`{command}`[^|]*) \|", PAGE, re.MULTILINE)
    return [int(code) for code in rows]


def test_the_help_lists_all_codes(capsys: Capture) -> None:
    assert help_codes(capsys) == [code.value for code in MEANINGS]


@pytest.mark.parametrize("command", COMMANDS)
def test_the_help_of_a_command_lists_the_codes_of_the_page(command: str, capsys: Capture) -> None:
    assert main([command, "--help"]) == 0
    has_codes = "Exit codes" in capsys.readouterr().out
    codes = page_codes(command)
    assert has_codes is (set(codes) != COMMON), "a command with codes of its own lists them"
    assert not has_codes or help_codes(capsys, command) == codes


def page_words(command: str) -> dict[str, str]:
    """Word → exit code of a command, as the second table of the page has them."""
    rows = re.findall(r"^\| ([^|]*`[^|]*) \| ([^|]*) \| ([^|]*) \|$", PAGE, re.MULTILINE)
    return {
        word: code
        for commands, words, code in rows
        if f"`{command}`" in commands
        for word in re.findall(r"`([^`]+)`", words)
    }


def test_the_page_has_each_status_verdict_and_answer() -> None:
    no_answer = DataCheckError("").facts["answer"]
    assert page_words("gate").keys() == {*get_args(CheckStatus)}
    assert page_words("tune").keys() == {*get_args(Kind), no_answer}
    answers = {no_answer} | {
        re.sub(r"^(better|worse), ", "", answer) for answer in get_args(Answer)
    }
    for command in ("eval", "try", "compare"):
        assert page_words(command).keys() == answers


@pytest.mark.parametrize("status", get_args(CheckStatus))
@pytest.mark.parametrize("choice", ["block", "warn"])
def test_the_gate_ends_with_the_code_of_the_page(status: CheckStatus, choice: str) -> None:
    policy = {"inconclusive": choice}
    given = GatePolicy.model_validate({"checks": {"RR@10": {"max_drop": 0.01}}, **policy})
    check = SimpleNamespace(error=None, status=status)
    code = decide_exit_code([cast("CheckResult", check)], [], find_blocking(given))
    cell = page_words("gate")[status]
    match = re.search(r"(\d) with `\w+: (\w+)`", cell)
    expected = int(match[1]) if match and match[2] == policy.get(status) else int(cell[0])
    assert code == expected


@pytest.mark.usefixtures("root")
def test_bad_input_fails_everywhere() -> None:
    commands = ["eval", "tune", "gate", "dataset show", "compare", "fuse", "explain", "rerank"]
    commands += ["diagnose"]
    assert {main([*command.split(), "absent.yaml"]) for command in commands} == {ExitCode.FAILED}


# ── with ``--json`` a program reads one JSON document, whatever goes wrong


def read_error(capsys: Capture) -> dict[str, Any]:
    """The error on standard output; nothing else was printed."""
    out, err = capsys.readouterr()
    assert err == ""
    document = json.loads(out)
    assert set(document) == {"error"}
    assert set(document["error"]) == {"file", "line", "message"}
    return dict(document["error"])


@pytest.mark.parametrize("command", leaf_commands())
def test_every_command_answers_in_json(command: str, capsys: Capture) -> None:
    assert "--json" in options_of(leaf_commands()[command])
    assert main([*command.split(), "--json", "--no-such-option"]) == 2
    error = read_error(capsys)
    assert ": --no-such-option" in error["message"]
    assert error["file"] is error["line"] is None


def test_what_comes_after_two_dashes_is_no_option(capsys: Capture) -> None:
    assert main(["eval", "--", "--json"]) == 2
    assert capsys.readouterr().err.startswith("error: --json: ")


def raising(error: BaseException) -> Callable[..., object]:
    def stop(*_: object, **__: object) -> object:
        raise error

    return stop


@pytest.mark.usefixtures("root")
@pytest.mark.parametrize(
    ("error", "code", "expected"),
    [
        (KeyboardInterrupt(), 130, (None, None, "interrupted")),
        (FusionBenchError(f"{EXPERIMENT}:3: no"), 2, (EXPERIMENT, 3, "no")),
        (FusionBenchError("one\ntwo"), 2, (None, None, "one two")),
        (OSError(28, "No space left"), 2, (None, None, "No space left")),
    ],
)
def test_an_error_takes_the_place_of_the_result(
    error: BaseException,
    code: int,
    expected: tuple[str | None, int | None, str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: Capture,
) -> None:
    monkeypatch.setattr("fusion_bench.evaluation.run_experiment.run_experiment", raising(error))
    assert main(["eval", EXPERIMENT, "--json"]) == code
    assert tuple(read_error(capsys).values()) == expected


def test_a_fault_of_our_own_keeps_its_traceback_on_standard_error(
    monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    fault = raising(RuntimeError("unforeseen"))
    monkeypatch.setattr("fusion_bench.experiment.method_table.list_methods", fault)
    assert main(["methods", "--json"]) == 2
    out, err = capsys.readouterr()
    assert json.loads(out)["error"]["message"].startswith("this is a bug")
    assert "RuntimeError: unforeseen" in err
    assert main(["methods"]) == 2
    shown = capsys.readouterr().err
    assert "RuntimeError: unforeseen" in shown
    assert shown.rstrip().splitlines()[-1].startswith("error: this ")


@pytest.mark.usefixtures("mine")
def test_where_there_is_a_result_the_error_goes_to_standard_error(capsys: Capture) -> None:
    assert main(["gate", cases.EXPERIMENT, "--json"]) == 2
    out, err = capsys.readouterr()
    assert json.loads(out)["refusals"]
    assert json.loads(err)["error"]["message"].startswith("refused: no baseline")


@pytest.mark.parametrize(
    ("file", "line", "message"),
    [
        ("a.yaml", 3, "k: too large"),
        ("a.yaml", None, "k: too large"),
        ("b: 1.yaml", 2, "no"),
        ("gone.yaml", None, "no such file: check the path"),
        ("runs.d", None, "a folder, and a file is needed"),
        ("runs.d", None, "cannot be read"),
        (None, None, "tiny: unknown split 'x'"),
        (None, None, "http://localhost:8080: no answer"),
        (None, None, "no place"),
        (None, None, "a\0: b"),
        (None, None, f"{'x' * 5000}: b"),
    ],
)
def test_a_place_is_a_file_that_exists_or_is_missed(
    file: str | None,
    line: int | None,
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("a.yaml", "b: 1.yaml"):
        Path(name).touch()
    for name in ("tiny", "runs.d"):
        Path(name).mkdir()
    place = "".join(f"{each}:" for each in (file, line) if each is not None)
    assert locate_error(f"{place} {message}".lstrip()) == (file, line, message)
