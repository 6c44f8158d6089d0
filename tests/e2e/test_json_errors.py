"""With ``--json`` a program reads one JSON document, whatever goes wrong."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fusion_bench.cli import main
from fusion_bench.cli.application.process import ErrorRecord, locate_error
from fusion_bench.errors import FusionBenchError
from tests import tiny
from tests.commands import leaf_commands, options_of
from tests.gate import cases
from tests.tiny import EXPERIMENT

Capture = pytest.CaptureFixture[str]


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


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["evl"], "unknown command 'evl'; did you mean 'eval'?"),
        (["dataset"], "No such option: --json"),
        (["dataset", "shwo"], "No such command 'shwo'. Did you mean 'show'?"),
        (["compare"], "Missing argument 'NAME=FILE' (see"),
        (["explain", "q", "--top", "x"], "Invalid value for '--top'"),
        (["compare", "a.json", "--measure", "RR"], "does not go with reports"),
    ],
)
def test_a_usage_error_is_json_too(arguments: list[str], says: str, capsys: Capture) -> None:
    assert main([*arguments, "--json"]) == 2
    assert says in read_error(capsys)["message"]


def test_what_comes_after_two_dashes_is_no_option(capsys: Capture) -> None:
    assert main(["eval", "--", "--json"]) == 2
    assert capsys.readouterr().err.startswith("error: --json: ")


def raising(error: BaseException) -> Callable[..., object]:
    def stop(*_: object, **__: object) -> object:
        raise error

    return stop


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
    expected: ErrorRecord,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: Capture,
) -> None:
    monkeypatch.chdir(tiny.make(tmp_path))
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


def test_where_there_is_a_result_the_error_goes_to_standard_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.chdir(cases.make_project(tmp_path))
    assert main(["gate", cases.EXPERIMENT, "--json"]) == 2
    out, err = capsys.readouterr()
    assert json.loads(out)["refusals"]
    assert json.loads(err)["error"]["message"].startswith("refused: no baseline")


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("a.yaml:3: k: too large", ("a.yaml", 3, "k: too large")),
        ("a.yaml: k: too large", ("a.yaml", None, "k: too large")),
        ("b: 1.yaml:2: no", ("b: 1.yaml", 2, "no")),
        (
            "gone.yaml: no such file: check the path",
            ("gone.yaml", None, "no such file: check the path"),
        ),
        (
            "runs.d: a folder, and a file is needed",
            ("runs.d", None, "a folder, and a file is needed"),
        ),
        ("runs.d: cannot be read", ("runs.d", None, "cannot be read")),
        ("tiny: unknown split 'x'", (None, None, "tiny: unknown split 'x'")),
        ("http://localhost:8080: no answer", (None, None, "http://localhost:8080: no answer")),
        ("no place", (None, None, "no place")),
        ("a\0: b", (None, None, "a\0: b")),
        (f"{'x' * 5000}: b", (None, None, f"{'x' * 5000}: b")),
    ],
)
def test_a_place_is_a_file_that_exists_or_is_missed(
    message: str,
    expected: tuple[str | None, int | None, str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("a.yaml", "b: 1.yaml"):
        Path(name).touch()
    for name in ("tiny", "runs.d"):
        Path(name).mkdir()
    assert locate_error(message) == expected
