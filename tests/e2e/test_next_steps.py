"""The commands that follow ``tune`` and ``gate``, where there is little to do."""

from __future__ import annotations

from pathlib import Path

import pytest

from fusion_bench.cli import main
from fusion_bench.cli._next_steps import after_tune
from tests.gate import cases
from tests.gate.cases import EXPERIMENT
from tests.report.tuning.cases import record

FILES = (Path("out/tuned.yaml"), Path("out/front.yaml"))


@pytest.mark.parametrize(("trial", "expected"), [(0, ["front.yaml"]), (7, ["tuned", "front"])])
def test_the_default_is_not_offered_as_a_tuned_system(trial: int, expected: list[str]) -> None:
    report = record(choice=record().choice.model_copy(update={"trial": trial}))
    steps = list(after_tune(report, FILES, None))
    assert len(steps) == len(expected)
    for step, name in zip(steps, expected, strict=True):
        assert name in step.command


def test_without_a_baseline_nothing_is_to_be_accepted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(cases.make_project(tmp_path))
    assert main(("gate", EXPERIMENT)) == 2
    output = "".join(capsys.readouterr())
    assert "--update" in output
    assert "accept these values" not in output
