"""Queries of the queries file that lists answer and nobody judged."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fusion_bench.cli import main
from fusion_bench.evaluation.dataset_checks.ignored_queries import warn_ignored
from tests import tiny


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
        assert "1 query of the queries file has no judgment, so it is left out." in text
        assert "The numbers describe 2 queries of 3." in text


def test_another_split_is_no_loss(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Query q3 is of the split ``dev``, and ``test`` is evaluated."""
    tiny.edit(root, "datasets/tiny/qrels.txt", "q3 0 d1 1\n", "")
    assert evaluate(root, capsys)[0] == 0


def test_a_larger_list_alone_is_no_loss(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with (root / "datasets/tiny/a.trec").open("a", encoding="utf-8") as file:
        file.writelines(f"x{number} Q0 d1 1 1 a\n" for number in range(20))
    count, shown, page = evaluate(root, capsys)
    assert count == 0
    assert "of the queries file" not in shown + page


def test_a_query_without_an_answer_is_no_loss(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with (root / "datasets/tiny/queries.jsonl").open("a", encoding="utf-8") as file:
        file.write('{"id": "q9", "type": "local", "split": "test"}\n')
    assert evaluate(root, capsys)[0] == 0


def test_several_are_counted() -> None:
    (warning,) = warn_ignored(11, 4)
    assert warning.text.startswith("11 queries of the queries file have no judgment, so they are")
    assert "describe 4 queries of 15." in warning.text
    assert list(warn_ignored(0, 4)) == []
