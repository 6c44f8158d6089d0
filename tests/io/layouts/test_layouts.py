"""Each layout of an answer in JSON: a sample that is read, and a file that is refused."""

import json
import math
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path

import pytest

from fusion_bench.cli import main
from fusion_bench.errors import DataError
from fusion_bench.io.formats import read_raw_table
from fusion_bench.io.json_objects import read_items
from fusion_bench.io.layouts import Layout, load_layouts
from fusion_bench.io.layouts.lists import match_answer
from fusion_bench.io.load_records import load_qrels, load_run
from fusion_bench.io.raw_files import Kind, RawTable
from tests.io.files import written

LAYOUTS = {layout.name: layout for layout in load_layouts()}
BROKEN = tomllib.loads((Path(__file__).parent / "broken.toml").read_text())
QRELS = {"q1": {"d1": 2, "d2": 1, "d3": 0}, "q2": {"d2": 1, "d4": 2}, "q3": {"d5": 1}}
RUN = {"q1": ["d1", "d3", "d2"], "q2": ["d1", "d4", "d2"], "q3": ["d2", "d5"]}
#: What the lists above score, and with all grades that are not 0 as 1.
SCORE, BINARY_SCORE = 0.7503, 0.7480


def compute_ndcg(qrels: Mapping[str, Mapping[str, int]], run: Mapping[str, list[str]]) -> float:
    def dcg(grades: list[int]) -> float:
        return sum(grade / math.log2(rank + 1) for rank, grade in enumerate(grades[:10], 1))

    values = [
        dcg([grades.get(document, 0) for document in run.get(query, [])])
        / dcg(sorted(grades.values(), reverse=True))
        for query, grades in qrels.items()
    ]
    return sum(values) / len(values)


def order_documents(table: RawTable) -> dict[str, list[str]]:
    sign = 1 if table.values is None or table.lower_is_better else -1
    keys = table.ranks if table.values is None else table.values
    assert keys is not None
    rows = sorted(
        zip([sign * float(key) for key in keys], table.queries, table.documents, strict=True),  # type: ignore[arg-type]
        key=lambda row: row[0],
    )
    lists: dict[str, list[str]] = {}
    for _, query, document in rows:
        lists.setdefault(query, []).append(document)
    return lists


def kind_of(layout: Layout) -> Kind:
    return "qrels" if layout.kind == "qrels" else "run"


@pytest.mark.parametrize("name", LAYOUTS)
def test_the_sample_of_a_layout_is_read(name: str, tmp_path: Path) -> None:
    layout = LAYOUTS[name]
    kind = kind_of(layout)
    path = written(tmp_path / "a.jsonl", layout.sample)
    assert layout.sample.count("\n") <= 4
    for item in read_items(path) if layout.lists else ():
        answer = match_answer(item.value, kind)
        assert answer is not None
        assert answer.layout.name == name
    if layout.refuse:
        with pytest.raises(DataError) as error:
            read_raw_table(path, kind)
        assert str(error.value).endswith(f"{layout.title}: {layout.refuse}")
    elif kind == "run":
        score = compute_ndcg(QRELS, order_documents(read_raw_table(path, "run")))
        assert score == pytest.approx(SCORE, abs=5e-5)
    else:
        expected = BINARY_SCORE if layout.binary else SCORE
        assert compute_ndcg(load_qrels(path).to_dict(), RUN) == pytest.approx(expected, abs=5e-5)


@pytest.mark.parametrize("name", LAYOUTS)
def test_a_broken_file_of_a_layout_is_refused_with_the_reason(name: str, tmp_path: Path) -> None:
    path = written(tmp_path / "a.jsonl", BROKEN[name]["text"])
    load = load_qrels if kind_of(LAYOUTS[name]) == "qrels" else load_run
    with pytest.raises(DataError) as error:
        load(path)
    assert str(error.value).startswith(str(path))
    assert BROKEN[name]["says"] in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    "name", [each.name for each in LAYOUTS.values() if each.kind and not each.refuse]
)
def test_a_layout_of_one_kind_is_not_read_as_the_other(name: str, tmp_path: Path) -> None:
    path = written(tmp_path / "a.jsonl", LAYOUTS[name].sample)
    load = load_run if kind_of(LAYOUTS[name]) == "qrels" else load_qrels
    title = re.escape(LAYOUTS[name].title)
    with pytest.raises(DataError, match=f"{title}, and|no known layout|names no query"):
        load(path)


def test_every_layout_has_a_broken_file_and_a_source() -> None:
    assert set(BROKEN) == set(LAYOUTS)
    for layout in LAYOUTS.values():
        assert layout.source.startswith("https://") or layout.family == "general"


def test_the_page_of_the_docs_is_written_from_the_table(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["formats", "--samples"]) == 0
    page = Path(__file__).parents[3] / "docs/reference/layouts.md"
    assert capsys.readouterr().out == page.read_text(encoding="utf-8")


def test_the_command_prints_the_table_and_one_layout(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["formats", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [row["name"] for row in rows] == list(LAYOUTS)
    chroma = next(row for row in rows if row["name"] == "chroma-query")
    assert (chroma["document"], chroma["score"]) == (["ids"], ["distances"])
    assert chroma["best"] == "lowest distance"
    assert main(["formats"]) == 0
    printed = capsys.readouterr().out
    assert all(name in printed for name in LAYOUTS)
    assert main(["formats", "qdrant-query"]) == 0
    assert LAYOUTS["qdrant-query"].sample.strip() in capsys.readouterr().out
    assert main(["formats", "qdrant"]) == 2
    assert "qdrant-query" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("ids", "hits", "reason"),
    [
        (None, [{"id": 0, "text": "a", "score": 2}], "by index alone"),
        (
            ["1", "0"],
            [{"id": 0, "score": 2}],
            "0 may be one",
        ),
        (["d1"], [{"id": "d2", "score": 2}], 'document "d2"'),
    ],
)
def test_numbers_of_documents_that_a_reranker_was_sent(
    ids: list[str] | None, hits: list[object], reason: str, tmp_path: Path
) -> None:
    sent = {} if ids is None else {"ids": ids}
    path = written(tmp_path / "a.jsonl", json.dumps({"qid": "q1", **sent, "response": hits}))
    with pytest.raises(DataError, match=re.escape(reason)):
        load_run(path)


def test_a_whole_number_that_is_no_id_is_an_index(tmp_path: Path) -> None:
    item = {"qid": "q1", "ids": ["d1", "d2"], "response": {"response": [{"id": 1, "score": 2}]}}
    assert load_run(written(tmp_path / "a.json", json.dumps(item))).to_dict() == {"q1": {"d2": 2}}
