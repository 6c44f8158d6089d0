"""Every hint that a reader prints is carried out, and gives the right numbers."""

import os
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import ir_measures
import pytest

from fusion_bench.errors import FusionBenchError
from fusion_bench.io.load_records import load_qrels, load_run
from fusion_bench.io.raw_files import FileLayout, Kind
from tests.io.files import written
from tests.parity.data import VARIABLE

#: An option of an error message with its value, as a shell reads them.
OPTION = re.compile(r"--(?:run|qrels)-columns ('(?:[^']|'\"'\"')*'|[^\s)]+)")


def read(path: Path, kind: Kind, columns: dict[str, str]) -> dict[str, dict[str, float]]:
    layout = FileLayout(columns=columns)
    found = (load_run if kind == "run" else load_qrels)(path, layout=layout).to_dict()
    return {query: dict(values) for query, values in found.items()}


def list_hints(path: Path, kind: Kind) -> Iterator[dict[str, str]]:
    """The columns of each reading that the error about a file proposes."""
    try:
        read(path, kind, {})
    except FusionBenchError as error:
        for reading in re.split(r"; or (?=write columns)", str(error)):
            pairs = [shlex.split(value)[0].split("=", 1) for value in OPTION.findall(reading)]
            if pairs and all(len(pair) == 2 for pair in pairs):
                yield {role: name for role, name in pairs if name != "NAME"}


class Sample(NamedTuple):
    """A file that no reader takes as it is, and what it holds."""

    name: str
    text: str
    kind: Kind
    rows: dict[str, dict[str, float]]


RUN = {"q1": {"d1": 9.0, "d3": 8.0, "d2": 7.5}, "q2": {"d1": 5.0, "d4": 4.5}}
RANKED = {"q1": {"d1": 3.0, "d3": 2.0, "d2": 1.0}, "q2": {"d1": 2.0, "d4": 1.0}}
GRADED = {"q1": {"d1": 2.0, "d3": 0.0}, "q2": {"d4": 1.0}}


def write_rows(rows: dict[str, dict[str, float]], line: str) -> str:
    """One line for each row; the fields are q, d, value, rank and n, the number of the line."""
    texts, number = [], 0
    for query, values in rows.items():
        for rank, (document, value) in enumerate(values.items(), start=1):
            number += 1
            fields = {"q": query, "d": document, "value": value, "rank": rank, "n": number}
            texts.append(line.format(**fields) + "\n")
    return "".join(texts)


SAMPLES = [
    Sample("three.run", write_rows(RUN, "{q} {d} {value}"), "run", RUN),
    Sample("three.tsv", write_rows(RUN, "{q}\t{d}\t{value}"), "run", RUN),
    Sample("three.csv", write_rows(RUN, "{q},{d},{value}"), "run", RUN),
    Sample("gaps.txt", write_rows(RUN, "{q} {d} {n}"), "run", RANKED),
    Sample("four.csv", write_rows(RUN, "{q},{d},{rank},{value}"), "run", RUN),
    Sample("four.trec", write_rows(RUN, "{q} {d} {rank} {value}"), "run", RUN),
    Sample("five.trec", write_rows(RUN, "{q} Q0 {d} {rank} {value}"), "run", RUN),
    Sample("swapped.trec", write_rows(RUN, "{q} Q0 {d} {value} {rank} t"), "run", RUN),
    Sample("three.qrels", write_rows(GRADED, "{q} {d} {value:.0f}"), "qrels", GRADED),
    Sample("grades.csv", write_rows(GRADED, "{q},{d},{value:.0f}"), "qrels", GRADED),
    *(
        Sample(f"named-{at}.csv", f"{header}\n{write_rows(RUN, line)}", "run", RUN)
        for at, (header, line) in enumerate(
            [
                ("search term,page_url,relevance points", "{q},{d},{value}"),
                ("qid,sku,bm25", "{q},{d},{value}"),
                ("qid,docid,position,my_score", "{q},{d},{rank},{value}"),
                ("qid,docid,rank,bm25", "{q},{d},{rank},{value}"),
                ("qid,item_title,item_id,score", "{q},title,{d},{value}"),
                ("question,answer,pid,cosine_sim", "{q},text,{d},{value}"),
            ]
        )
    ),
    Sample(
        "position.csv", f"qid,docid,position\n{write_rows(RUN, '{q},{d},{rank}')}", "run", RANKED
    ),
    Sample(
        "stars.csv", f"term,sku,stars\n{write_rows(GRADED, '{q},{d},{value}')}", "qrels", GRADED
    ),
]


@pytest.mark.parametrize("sample", SAMPLES, ids=[sample.name for sample in SAMPLES])
def test_a_hint_reads_the_file(sample: Sample, tmp_path: Path) -> None:
    path = written(tmp_path / sample.name, sample.text)
    readings = [read(path, sample.kind, hint) for hint in list_hints(path, sample.kind)]
    assert sample.rows in readings
    if sample.kind == "run":
        assert [list(values) for values in readings[0].values()] == [
            list(values) for values in sample.rows.values()
        ]


@pytest.mark.parametrize(
    "text",
    [
        "qid,docid,l2\nq1,d1,0.1\nq1,d2,0.2\n",
        "qid,docid,page\nq1,d1,one\nq1,d2,two\n",
        "qid,docid,rank_score\nq1,d1,high\nq1,d2,low\n",
        "term,sku\nq1,d1\nq1,d2\n",
        "{} {}\n",
    ],
)
def test_where_nothing_works_no_columns_are_proposed(text: str, tmp_path: Path) -> None:
    path = written(tmp_path / "a.csv", text)
    assert list(list_hints(path, "run")) == []


#: Cases whose run scores nDCG@10 .7503.
STANDARD = {"P08", "P09", "P12", "P13", "P14", "P15", "P16", "P18"}


def test_hints_about_the_public_cases_read_them() -> None:
    root = os.environ.get(VARIABLE)
    folder = Path(root or "").parent / "cases"
    if not root or not folder.is_dir():
        pytest.skip(f"{VARIABLE} is not set, or has no folder of cases beside it")
    kinds: tuple[Kind, ...] = ("run", "qrels")
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        for kind in kinds:
            for hint in list_hints(path, kind):
                rows = read(path, kind, hint)
                qrels = path.parent / "qrels.txt"
                if kind == "run" and path.parent.name in STANDARD and qrels.is_file():
                    measure = ir_measures.nDCG @ 10
                    value = ir_measures.calc_aggregate([measure], load_qrels(qrels).to_dict(), rows)
                    assert round(value[measure], 4) == 0.7503, (path, hint)
