"""Judgments and runs from whatever other libraries hold them in."""

from __future__ import annotations

import subprocess
import sys
from collections import namedtuple
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import ir_measures
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from fusion_bench.data.qrels import Qrels
from fusion_bench.data.run import Run
from fusion_bench.errors import DataError

SCORES = {"q1": {"d2": 9.0, "d1": 7.5}, "q2": {"d3": 1.0}}
GRADES = {"q1": {"d1": 2, "d2": 0}, "q2": {"d3": 1}}
ROWS = [("q1", "d2", 9.0), ("q1", "d1", 7.5), ("q2", "d3", 1.0)]
COLUMNS = {"qid": ["q1", "q1", "q2"], "docno": ["d2", "d1", "d3"], "score": [9.0, 7.5, 1.0]}

Scored = namedtuple("Scored", ["query_id", "doc_id", "score"])


@dataclass
class Hit:
    query: str
    document: str
    value: float


class Collection:
    """As ir_datasets offers one."""

    def qrels_iter(self) -> Iterator[ir_measures.Qrel]:
        return (ir_measures.Qrel(q, d, g) for q, docs in GRADES.items() for d, g in docs.items())

    def scoreddocs_iter(self) -> Iterator[Scored]:
        return (Scored(*row) for row in ROWS)


class RanxLike:
    name = "bm25"

    def to_dict(self) -> dict[str, dict[str, float]]:
        return SCORES


RUNS: dict[str, Any] = {
    "nested": SCORES,
    "pairs": {"q1": [("d2", 9.0), ["d1", 7.5]], "q2": (("d3", 1),)},
    "hits": {"q1": [{"docid": "d2", "score": 9}, {"docid": "d1", "score": 7.5}], "q2": {"d3": 1}},
    "pandas": pd.DataFrame(COLUMNS),
    "pandas, nullable": pd.DataFrame(COLUMNS).convert_dtypes(),
    "polars": pl.DataFrame(COLUMNS),
    "pyarrow": pa.table(COLUMNS),
    "ranx": RanxLike(),
    "named tuples": [Scored(*row) for row in ROWS],
    "generator": (Scored(*row) for row in ROWS),
    "dataclasses": [Hit(*row) for row in ROWS],
    "triples": ROWS,
    "mappings": [dict(zip(COLUMNS, row, strict=True)) for row in ROWS],
    "ir_measures": [ir_measures.ScoredDoc(*row) for row in ROWS],
    "ir_datasets": Collection(),
}


@pytest.mark.parametrize("kind", RUNS)
def test_a_run_of_any_kind(kind: str) -> None:
    assert Run.from_dict("bm25", RUNS[kind]).to_dict() == SCORES


@pytest.mark.parametrize(
    "given",
    [
        GRADES,
        {"q1": [("d1", 2), ("d2", 0.0)], "q2": ["d3"]},
        {"q1": {"d1": np.int64(2), "d2": 0}, "q2": {"d3"}},
        pd.DataFrame(
            {"query": ["q1", "q1", "q2"], "doc": ["d1", "d2", "d3"], "label": [2.0, 0, 1]}
        ),
        pl.DataFrame({"topic": ["q1", "q1", "q2"], "doc": ["d1", "d2", "d3"], "rel": [2, 0, 1]}),
        Collection(),
        Collection().qrels_iter(),
    ],
)
def test_judgments_of_any_kind(given: object) -> None:
    assert Qrels.from_dict(given).to_dict() == GRADES


def test_a_list_of_ids_is_ranked_as_it_stands() -> None:
    run = Run.from_dict({"q1": ["d9", "d1", "d5"]})
    assert run.to_dict() == {"q1": {"d9": 3.0, "d1": 2.0, "d5": 1.0}}


def test_whole_numbers_become_text() -> None:
    frame = pd.DataFrame({"qid": [7, 7], "docno": [10, 9], "score": [0.5, 0.6]})
    assert Run.from_pandas(frame).to_dict() == {"7": {"9": 0.6, "10": 0.5}}
    assert Qrels.from_dict({7: {10: 1}}).to_dict() == {"7": {"10": 1}}


def test_the_name_is_given_or_its_own_or_run() -> None:
    assert Run.from_dict("a", SCORES).name == "a"
    assert Run.from_dict(SCORES, name="a").name == "a"
    assert Run.from_dict(RanxLike()).name == "bm25"
    assert Run.from_pandas(pd.DataFrame(COLUMNS), name="a").name == "a"
    assert Run.from_dict(pd.DataFrame(COLUMNS)).name == "run"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (3, "cannot read a run from int: give a path"),
        ("bm25.trec", "cannot read a run from str"),
        ([1, 2], "cannot read a run from list"),
        ({}, "at least one row is needed"),
        ([], "at least one row is needed"),
        (pd.DataFrame(COLUMNS).rename(columns={"docno": "url"}), "no column for the document"),
        (pd.DataFrame(COLUMNS).set_index("qid"), r"'qid' is its index: call reset_index\(\)"),
        (pd.DataFrame([["q", "d", 1, 2]], columns=["qid", "doc", "score", "score"]), "two columns"),
        (pl.DataFrame(COLUMNS).lazy(), r"call its collect\(\) first"),
        ({"q1": "d1"}, "query 'q1': given 'd1': give"),
        ({"q1": {"d1", "d2"}}, "a set, which has no order"),
        ({"q1": [("d1", 2.0, 3)]}, r"no \(document, score\) pair"),
        ({"q1": {"d1": "high"}}, "score 'high' is not a number"),
        ({"q1": {"d1": {"score": 1}}}, "is not a number"),
        ({"q1": {"d1": None}}, "query 'q1', document 'd1': score None is not a number"),
        ({"q1": {"d1": float("inf")}}, "score inf is not a finite number"),
        ({"q1": {1: 2.0, "1": 3.0}}, "'1' is given both as a number and as text"),
        ([("q1", None, 1.0)], "id None is neither text nor a whole number"),
        ([("q1", ["d"], 1.0)], "unhashable"),
        ([("q1", "d1", 1.0), ("q1", "d1", 2.0)], "stands twice"),
    ],
)
def test_what_is_no_run_says_what_to_do(given: object, message: str) -> None:
    with pytest.raises(DataError, match=message):
        Run.from_dict("a", given)


@pytest.mark.parametrize(
    ("grade", "message"),
    [(2.5, "grade 2.5 is not a whole number"), (float("nan"), "grade nan"), ("a", "grade 'a'")],
)
def test_grades_are_whole_numbers(grade: object, message: str) -> None:
    with pytest.raises(DataError, match=message):
        Qrels.from_dict({"q1": {"d1": grade}})


def test_no_other_package_is_imported() -> None:
    code = (
        "import sys; from fusion_bench.data.run import Run; Run.from_dict({'q': {'d': 1}});"
        "print(*{'pandas', 'polars', 'ranx', 'ir_measures', 'ir_datasets'} & set(sys.modules))"
    )
    out = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert out.stdout.split() == []
