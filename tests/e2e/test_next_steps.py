"""The commands that follow a command: they do what their purpose says, with any ids and options."""

from pathlib import Path
from typing import Any

import pytest

from fusion_bench.cli import main
from fusion_bench.cli.application.next_steps import after_tune
from tests import tiny
from tests.commands import next_commands
from tests.gate import cases
from tests.gate.cases import EXPERIMENT
from tests.report.tuning_cases import record
from tests.report.tuning_finding_cases import BM25

Capture = pytest.CaptureFixture[str]
FILES = (Path("out/tuned.yaml"), Path("out/front.yaml"))


@pytest.mark.parametrize(
    ("trial", "expected"), [(0, ["front.yaml"]), (7, ["tuned", "export", "front"])]
)
def test_the_default_is_not_offered_as_a_tuned_system(trial: int, expected: list[str]) -> None:
    choice = record().choice.model_copy(update={"trial": trial})
    report = record(choice=choice, verdict="ship" if trial else "keep")
    steps = list(after_tune(report, FILES, ()))
    assert len(steps) == len(expected)
    for step, name in zip(steps, expected, strict=True):
        assert name in step.command


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({"verdict": "too few queries"}, ["power --sd ", "tuned", "front"]),
        ({"untuned": BM25}, ["front"]),
    ],
)
def test_tuned_numbers_are_not_exported_without_a_gain_over_everything_untuned(
    changed: dict[str, Any], expected: list[str]
) -> None:
    steps = list(after_tune(record(**changed), FILES, ()))
    assert len(steps) == len(expected)
    for step, name in zip(steps, expected, strict=True):
        assert name in step.command


@pytest.mark.usefixtures("mine")
def test_without_a_baseline_nothing_is_to_be_accepted(capsys: Capture) -> None:
    assert main(("gate", EXPERIMENT)) == 2
    output = "".join(capsys.readouterr())
    assert "--update" in output
    assert "accept these values" not in output


def run_next(capsys: Capture, *arguments: str, code: int = 0) -> list[list[str]]:
    assert main(arguments) == code
    return next_commands(capsys.readouterr().out)


def prefix_ids(folder: Path) -> None:
    for path in folder.glob("*.t*"):
        rows = [line.split() for line in path.read_text().splitlines()]
        lines = [" ".join((f"-{row[0]}", row[1], f"-{row[2]}", *row[3:])) for row in rows]
        path.write_text("\n".join(lines) + "\n")
    queries = folder / "queries.jsonl"
    queries.write_text(queries.read_text().replace('"id": "', '"id": "-'))


def test_ids_that_begin_with_a_dash_are_no_options(root: Path, capsys: Capture) -> None:
    prefix_ids(root / "datasets/tiny")
    tiny.edit(
        root,
        tiny.EXPERIMENT,
        "[a, b]\n    fusion: {method: rrf_v2}\n    blend: {method: position_aware, reranker: r}\n",
        "[a]\n",
    )
    options = ("--datasets", "datasets", "--set", "alpha=0.1")
    explain = run_next(capsys, "eval", tiny.EXPERIMENT, "--no-plots", *options)[0]
    assert explain[0] == "explain"
    assert explain[-3:-1] == ["--", tiny.EXPERIMENT]
    assert set(options) <= set(explain)
    (explain_document,) = run_next(capsys, *explain)
    assert [word[0] for word in explain_document[-2:]] == ["-", "-"]
    assert main(explain_document) == 0


def test_the_gate_explains_a_query_whose_id_begins_with_a_dash(mine: Path, capsys: Capture) -> None:
    prefix_ids(mine / "datasets/mine")
    cases.renew_baseline(mine)
    tiny.edit(mine, EXPERIMENT, "live: {runs: [a]}", "live: {runs: [b]}")
    explain, accept = run_next(capsys, "gate", EXPERIMENT, "--datasets", "datasets", code=1)
    assert explain[-3] == "--"
    assert main(explain) == 0
    assert accept == ["gate", EXPERIMENT, "--datasets", "datasets", "--anchor", "--reason", "…"]
    assert main(accept) == 0


def test_try_after_compare_reads_and_measures_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("judged.csv").write_text("search term,url,stars\nq1,d1,2\nq2,d2,1\n")
    for name in ("a", "b"):
        rows = "q1,d1,0.9\nq1,d2,0.8\nq2,d2,0.7\n"
        Path(f"{name}.csv").write_text(f"search term,url,points\n{rows}")
    options = [
        *("--measure", "RR@5"),
        *("--binary-relevance", "2"),
        *("--run-columns", "query=search term", "--run-columns", "document=url"),
        *("--run-columns", "score=points", "--qrels-columns", "query=search term"),
        *("--qrels-columns", "document=url", "--qrels-columns", "grade=stars"),
    ]
    files = ("--qrels", "judged.csv", "a.csv", "b.csv")
    (command,) = run_next(capsys, "compare", *files, *options)
    assert command == ["try", "--qrels", "judged.csv", "a=a.csv", "b=b.csv", *options]
    save, role = run_next(capsys, *command, "--no-plots")
    assert save == [*command, "--save", "mine"]
    assert role == [*command, "--role", "a=question"]
