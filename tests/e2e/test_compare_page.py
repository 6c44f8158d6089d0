"""``compare --html``: of two reports, of one, and of run files."""

import json
from pathlib import Path

import pytest

from fusion_bench.cli import main
from fusion_bench.evaluation.report_file import read_report
from tests import tiny
from tests.report.html.pages import page_data, parse_page
from tests.tiny import EXPERIMENT, edit

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> Path:
    tiny.make(tmp_path)
    monkeypatch.chdir(tmp_path)
    said(capsys, "eval", EXPERIMENT, "--no-plots", "--no-html", "--out", "before")
    edit(tmp_path, EXPERIMENT, "  one:\n    runs: [a, b]", "  one:\n    runs: [a]")
    said(capsys, "eval", EXPERIMENT, "--no-plots", "--no-html", "--out", "after")
    return tmp_path


def said(capsys: Capture, *arguments: str, code: int = 0) -> str:
    assert main(arguments) == code
    return "".join(capsys.readouterr())


def test_two_reports(root: Path, capsys: Capture) -> None:
    text = said(capsys, "compare", "before", "after/report.json", "--html", "--out", "page")
    assert text.endswith("\nOpen page/comparison.html\n")
    html = (root / "page/comparison.html").read_text(encoding="utf-8")
    shown = parse_page(html).text
    for words in ("Comparison: e", "What changed in the configuration", "before/report.json"):
        assert words in shown
    (collection,) = page_data(html)["collections"]
    assert [row["name"] for row in collection["systems"] if row["group"] == "open"] == ["one"]
    record = json.loads((root / "page/comparison.json").read_text(encoding="utf-8"))
    assert [each["collection"] for each in record["comparisons"]] == ["tiny"]
    (change,) = record["change"]["collections"]
    one = next(row for row in change["systems"] if row["name"] == "one")
    assert one["config"]
    # The same numbers as without a page.
    printed = json.loads(said(capsys, "compare", "before", "after", "--json"))
    assert printed == record["comparisons"]
    assert not (root / "reports/compare").exists()


def test_other_queries_have_a_page_without_verdicts(root: Path, capsys: Capture) -> None:
    said(capsys, "eval", EXPERIMENT, "--split", "all", "--no-plots", "--no-html", "--out", "all")
    refused = said(capsys, "compare", "before", "all", code=2)
    assert "in their queries" in refused
    text = said(capsys, "compare", "before", "all", "--html", "--json")
    assert [each["collection"] for each in json.loads(text)] == ["tiny"]
    html = (root / "reports/compare/comparison.html").read_text(encoding="utf-8")
    assert "the queries differ" in parse_page(html).text
    # Whoever asks for a system asks for a test.
    said(capsys, "compare", "before", "all", "--html", "--candidate", "one", code=2)


def test_one_report_and_errors(root: Path, capsys: Capture) -> None:
    said(capsys, "compare", "before", "--html")
    html = (root / "reports/compare/comparison.html").read_text(encoding="utf-8")
    assert "against one" in parse_page(html).text
    assert "no such file" in said(capsys, "compare", "before", "lacking", "--html", code=2)
    (root / "empty").mkdir()
    assert "no such file" in said(capsys, "compare", "before", "empty", code=2)
    assert "no page" in said(capsys, "compare", "before", "after", "--out", "x", code=2)


def test_run_files_have_the_page_of_an_evaluation(root: Path, capsys: Capture) -> None:
    folder = "datasets/tiny"
    runs = [f"{folder}/a.trec", f"{folder}/b.trec"]
    said(capsys, "compare", "--qrels", f"{folder}/qrels.txt", *runs, "--html", "--out", "page")
    html = (root / "page/report.html").read_text(encoding="utf-8")
    (collection,) = page_data(html)["collections"]
    assert collection["details"]["relevant"]["sources"] == ["a", "b"]
    assert read_report(root / "page/report.json").collections[0].baseline == "a"
