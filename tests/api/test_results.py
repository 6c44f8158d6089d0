"""Results in Python: tables, pages."""

import re
from html import unescape
from pathlib import Path
from typing import Any

import pytest

import fusion_bench as fb
from fusion_bench.report.record_rows import flatten
from tests import tiny
from tests.api.cases import QRELS, RUNS, make_collection
from tests.report.html.pages import page_data, parse_page
from tests.tiny import EXPERIMENT, edit

PAGE = Path(__file__).parents[2] / "docs/python.md"
#: Result → the frames that the page lists for it.
ROW = re.compile(r"^- `fb\.tables\((\w+)\)`[^:]*: (.+?)(?=^- |\n\n)", re.MULTILINE | re.DOTALL)


@pytest.fixture
def results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    monkeypatch.chdir(tiny.make(tmp_path))
    with Path(EXPERIMENT).open("a", encoding="utf-8") as file:
        file.write("gate: {system: two, checks: {RR@10: {max_drop: 0.01}}}\n")
    before = fb.run_experiment(EXPERIMENT)
    verdict = fb.gate(EXPERIMENT, update="first")
    edit(tmp_path, EXPERIMENT, "  one:\n    runs: [a, b]", "  one:\n    runs: [a]")
    after = fb.run_experiment(EXPERIMENT)
    qrels, runs = make_collection(20)
    return {
        "report": after,
        "change": fb.compare_reports(before, after),
        "tuned": fb.tune(qrels, runs, "rrf", trials=20, folds=0),
        "verdict": verdict,
    }


def test_every_block_that_is_documented_has_its_rows(results: dict[str, Any]) -> None:
    documented = [
        (name, block)
        for name, blocks in ROW.findall(PAGE.read_text(encoding="utf-8"))
        for block in re.findall(r"`(\w+)`", blocks)
    ]
    assert len(documented) == 19
    tables = {name: fb.tables(result) for name, result in results.items()}
    for name, block in documented:
        assert block in tables[name], (name, block)
        assert len(tables[name][block]) or block == "lint", (name, block)
    # And nothing that a report has is left out.
    assert set(tables["report"]) == {block for name, block in documented if name == "report"}
    assert set(tables["change"]) == {block for name, block in documented if name == "change"}


def test_the_frames_have_the_numbers_of_the_record(results: dict[str, Any]) -> None:
    report = results["report"]
    tables = fb.tables(report)
    (collection,) = report.collections
    systems = tables["systems"].set_index(["system", "measure"])["mean"].to_dict()
    values = tables["values"].set_index(["system", "query"])["RR@10"].to_dict()
    for row in collection.systems:
        assert systems[row.name, "RR@10"] == row.measures["RR@10"].mean
        for query, value in zip(collection.queries, row.measures["RR@10"].values, strict=True):
            assert values[row.name, query] == value
    differences = tables["differences"].set_index(["candidate", "measure"])["difference"].to_dict()
    for item in collection.comparisons:
        assert differences[item.candidate, item.measure] == item.difference
    assert len(tables["relevant"]) == len(report.details().collections[0].relevant.documents)
    stored = Path("stored.json")
    stored.write_text(report.model_dump_json(), encoding="utf-8")
    read = fb.tables(stored)
    assert set(read) == {"systems", "differences", "values", "lists", "lint"}
    assert read["values"].equals(tables["values"])
    assert set(fb.tables(report.details())) == set(tables) - set(read)


def test_nested_keys_are_joined_and_lists_are_texts() -> None:
    record = {"a": 1, "b": {"c": 2, "d": {"e": None}}, "f": ["x", "y"], "g": [1, [2]], "h": []}
    assert flatten(record) == {
        "a": 1,
        "b.c": 2,
        "b.d.e": None,
        "f": "x, y",
        "g": "[1, [2]]",
        "h": "",
    }


@pytest.mark.parametrize("thing", [3, None, [1]])
def test_what_has_no_tables_says_so(thing: object) -> None:
    with pytest.raises(fb.FusionBenchError, match="no tables of"):
        fb.tables(thing)


@pytest.fixture(autouse=True)
def _in_a_project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tiny.make(tmp_path))


def test_a_comparison_has_its_page_with_documents() -> None:
    page = fb.compare(QRELS, RUNS, measures="RR@10").page()
    (collection,) = page_data(page.html)["collections"]
    assert collection["queries"] == ["q1", "q2"]
    assert collection["details"]["relevant"]["sources"] == ["bm25", "dense"]
    assert repr(page) == str(page)
    assert re.fullmatch(r"HtmlPage\('compare', 0\.\d\d MB\)", repr(page))


def test_a_notebook_shows_it_in_a_frame_of_its_own() -> None:
    hostile = {"<script>alert(1)</script>": RUNS["bm25"], '"><b>': RUNS["dense"]}
    page = fb.compare(QRELS, hostile, measures="RR@10").page()
    frame = page._repr_html_()
    parsed = parse_page(frame)
    ((tag, attributes),) = parsed.tags
    assert (tag, attributes["sandbox"]) == ("iframe", "allow-scripts")
    assert attributes["srcdoc"] == page.html
    assert int(attributes["height"] or 0) < 1000
    assert unescape(frame).count("<iframe") == 1


def test_it_is_saved_whole(tmp_path: Path) -> None:
    page = fb.page(fb.run_experiment(EXPERIMENT))
    path = page.save(tmp_path / "new folder" / "page.html")
    assert path.read_text(encoding="utf-8") == page.html
    assert "details" in page_data(page.html)["collections"][0]
    with pytest.raises(fb.FusionBenchError):
        page.save(tmp_path)


def test_what_tune_returned_has_a_page() -> None:
    qrels, runs = make_collection(20)
    tuned = fb.tune(qrels, runs, "rrf", trials=2, folds=0)
    page = tuned.page()
    assert "held out" in parse_page(page.html).text
    assert page.html == fb.page(tuned.report).html


def test_what_gate_returned_has_a_page() -> None:
    with Path(EXPERIMENT).open("a", encoding="utf-8") as file:
        file.write("gate: {system: two, checks: {RR@10: {max_drop: 0.01}}}\n")
    verdict = fb.gate(EXPERIMENT, update="first")
    assert page_data(fb.page(verdict).html)["kind"] == "gate"


def test_two_reports_have_a_page_and_a_change() -> None:
    before = fb.run_experiment(EXPERIMENT)
    edit(Path.cwd(), EXPERIMENT, "  one:\n    runs: [a, b]", "  one:\n    runs: [a]")
    after = fb.run_experiment(EXPERIMENT)
    Path("old").mkdir()
    Path("old/report.json").write_text(before.model_dump_json(), encoding="utf-8")
    page = fb.page(after, before="old")
    assert page_data(page.html)["kind"] == "change"
    change = fb.compare_reports("old/report.json", after)
    one = change.to_pandas().set_index("name").to_dict("index")["one"]
    assert (one["then"], one["now"], one["answer"]) == (1, 0.5, "not shown")
    assert list(change.collections[0].queries.to_pandas()["system"]) == ["one"] * 3
    # A report of a file has no documents.
    assert "details" not in page_data(fb.page("old").html)["collections"][0]


@pytest.mark.parametrize("thing", [3, {"q1": {"d1": 1}}, None])
def test_what_has_no_page_says_so(thing: object) -> None:
    with pytest.raises(fb.FusionBenchError, match="no page of"):
        fb.page(thing)
    with pytest.raises(fb.FusionBenchError, match="'before' takes"):
        fb.compare_reports(thing, "old")  # type: ignore[arg-type]
