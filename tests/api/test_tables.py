"""Each block of a page as a data frame, as docs/python.md lists them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

import fusion_bench as fb
from fusion_bench.api.tables import flatten
from tests import tiny
from tests.api.cases import make_collection
from tests.tiny import EXPERIMENT, edit

PAGE = Path(__file__).parents[2] / "docs/python.md"
ROW = re.compile(r'\| `fb\.tables\((\w+)\)\["(\w+)"\]` \|$', re.MULTILINE)


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
    documented = ROW.findall(PAGE.read_text(encoding="utf-8"))
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
