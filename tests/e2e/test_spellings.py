"""What is typed wrong, or as it was once spelled, is answered by what to type."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path

import pytest

from fusion_bench.cli import main
from fusion_bench.cli.application.app import RENAMED
from tests import tiny
from tests.commands import leaf_commands, options_of

Capture = pytest.CaptureFixture[str]
ROWS = [(command, old, new) for command, row in RENAMED.items() for old, new in row.items()]
#: Option → what it takes in some commands and in others.
SEVERAL_METAVARS = {"--out": {"DIR", "FILE", "FILE|DIR"}}


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tiny.make(tmp_path)
    monkeypatch.chdir(folder)
    return folder


@pytest.mark.parametrize(("command", "old", "new"), ROWS)
def test_an_old_spelling_names_the_new_one(
    command: str, old: str, new: str, capsys: Capture
) -> None:
    for words in ([old, "x"], [f"{old}=x"], ["x", old]):
        assert main([*command.split(), *words]) == 2
        err = capsys.readouterr().err
        assert f"{command} has no {old}: type {new}" in err
    known = options_of(leaf_commands()[command])
    assert old not in known
    typed = new.split()[0]
    assert typed in known or typed == command


def test_an_old_spelling_is_refused_as_json_and_is_a_value_after_two_dashes(
    root: Path, capsys: Capture
) -> None:
    assert main(["tune", "--export", "x", "--json"]) == 2
    assert "--export-study" in json.loads(capsys.readouterr().out)["error"]["message"]
    assert main(["explain", "--", tiny.EXPERIMENT, "--experiment"]) == 2
    assert "no query '--experiment'" in capsys.readouterr().err
    assert root.exists()


def test_an_option_means_the_same_in_every_command() -> None:
    metavars = defaultdict(set)
    for command in leaf_commands().values():
        for parameter in command.params:
            if parameter.param_type_name == "option":
                is_flag = bool(getattr(parameter, "is_flag", False))
                kind = "flag" if is_flag else parameter.metavar
                metavars[parameter.opts[0]].add(kind)
    several = {name: kinds for name, kinds in metavars.items() if len(kinds) > 1}
    assert several == SEVERAL_METAVARS
