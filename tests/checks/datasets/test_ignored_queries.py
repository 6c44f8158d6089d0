"""Queries of the queries file that lists answer and nobody judged."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fusion_bench.checks.dataset_facts import IGNORED_QUERIES, warn_ignored
from fusion_bench.cli import main
from tests import tiny, unjudged_project


@pytest.fixture(autouse=True)
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tiny.make(tmp_path))
    return tmp_path


def evaluate(root: Path, capsys: pytest.CaptureFixture[str]) -> tuple[int, str, str]:
    """The count of the report, what the terminal shows, and the Markdown page."""
    assert main(["eval", tiny.EXPERIMENT, "--no-plots", "--out", "report"]) == 0
    (record,) = json.loads((root / "report/report.json").read_text(encoding="utf-8"))["collections"]
    page = (root / "report/report.md").read_text(encoding="utf-8")
    return record["ignored_queries"], capsys.readouterr().out, page


def test_eval_names_them(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tiny.edit(root, "datasets/tiny/qrels.txt", "q4 0 d4 1\n", "")
    count, shown, page = evaluate(root, capsys)
    assert count == 1
    for text in (" ".join(shown.split()), page):
        assert "1 query of the " in text
        assert "2 queries of 3." in text


def test_another_split_is_no_loss(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Query q3 is of the split ``dev``, and ``test`` is evaluated."""
    tiny.edit(root, "datasets/tiny/qrels.txt", "q3 0 d1 1\n", "")
    assert evaluate(root, capsys)[0] == 0


def test_a_larger_list_alone_is_no_loss(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with (root / "datasets/tiny/a.trec").open("a", encoding="utf-8") as file:
        file.writelines(f"x{number} Q0 d1 1 1 a\n" for number in range(20))
    count, shown, page = evaluate(root, capsys)
    assert count == 0
    assert " queries file" not in shown + page


def test_a_query_without_an_answer_is_no_loss(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with (root / "datasets/tiny/queries.jsonl").open("a", encoding="utf-8") as file:
        file.write('{"id": "q9", "type": "local", "split": "test"}\n')
    assert evaluate(root, capsys)[0] == 0


def test_tune_and_the_gate_name_them(
    root: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(unjudged_project.make(root / "other"))
    tiny.edit(Path(), unjudged_project.DATASET, "runs:", "queries: queries.jsonl\nruns:")
    names = "".join(f'{{"id": "q{q}"}}\n' for q in range(unjudged_project.QUERIES))
    Path("datasets/mine/queries.jsonl").write_text(names, encoding="utf-8")
    qrels = Path("datasets/mine/qrels.txt")
    rows = qrels.read_text(encoding="utf-8").splitlines(keepends=True)
    qrels.write_text("".join(row for row in rows if not row.startswith("q7 ")), encoding="utf-8")
    gate = ["gate", unjudged_project.EXPERIMENT, "--no-html"]
    tune = ["tune", unjudged_project.EXPERIMENT, "--no-plots", "--no-html"]
    assert main([*gate, "--update", "--reason", "first"]) == 0
    for words, keys in ((tune, ("data", "warnings")), (gate, ("data_warnings",))):
        capsys.readouterr()
        assert main([*words, "--json"]) in {0, 3}  # unjudged documents decide what is tuned
        found = json.loads(capsys.readouterr().out)
        for key in keys:
            found = found[key]
        (text,) = [each["text"] for each in found if each["key"] == IGNORED_QUERIES]
        assert "59 queries of 60." in text


def test_several_are_counted() -> None:
    (warning,) = warn_ignored(11, 4)
    assert warning.text.startswith("11 queries of the ")
    assert "describe 4 queries of 15." in warning.text
    assert list(warn_ignored(0, 4)) == []
