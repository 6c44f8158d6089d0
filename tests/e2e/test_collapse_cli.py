"""Chunks collapsed to documents, as a user runs it."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from fusion_bench.cli import main

Capture = pytest.CaptureFixture[str]
QUERIES = [f"q{n}" for n in range(6)]
#: Chunks of A rank 1 and 2, then those of B and C.
CHUNKS = ("A#0", "A#1", "B#0", "C#0", "C#1")


def make_rows(ids: Mapping[str, str]) -> str:
    lines = ["query,document,score,parent"]
    for query in QUERIES:
        lines += [
            f"{query},{ids[chunk]},{9 - place},{chunk[0]}" for place, chunk in enumerate(CHUNKS)
        ]
    return "\n".join(lines) + "\n"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Lists of chunks, and judgments of documents: B is the only relevant one."""
    monkeypatch.chdir(tmp_path)
    write("chunks.csv", make_rows({chunk: chunk for chunk in CHUNKS}))
    write("again.csv", make_rows({chunk: chunk[0] for chunk in CHUNKS}))
    write("qrels.tsv", "query\tdocument\tgrade\n" + "".join(f"{q}\tB\t1\n" for q in QUERIES))
    documents = [{"id": chunk, "text": chunk, "of": chunk[0]} for chunk in CHUNKS]
    write("documents.jsonl", "".join(json.dumps(each) + "\n" for each in documents))
    write_dataset()
    return tmp_path


def write(name: str, text: str) -> None:
    Path(name).write_text(text, encoding="utf-8")


def write_dataset(path: str = "chunks.csv", **keys: Any) -> None:  # noqa: ANN401 - as in YAML
    spec = {
        "name": "made",
        "qrels": "qrels.tsv",
        "judgments": "complete",
        "documents": "documents.jsonl",
        "runs": {"a": {"path": path, **keys}},
    }
    write("dataset.yaml", json.dumps(spec))


def evaluate(capsys: Capture, **collapses: object) -> dict[str, float]:
    """System → its reciprocal rank: that of B, which chunks of A rank above."""
    systems = {
        name: {"runs": ["a"], **({} if collapse is None else {"collapse": collapse})}
        for name, collapse in collapses.items()
    }
    experiment = {
        "dataset": "dataset.yaml",
        "baseline": next(iter(systems)),
        "measures": ["RR", "nDCG@10"],
        "systems": systems,
    }
    write("e.yaml", json.dumps(experiment))
    if main(["eval", "e.yaml", "--allow-suspect"]):
        raise AssertionError(capsys.readouterr().err)
    capsys.readouterr()
    [collection] = json.loads(Path("reports/e/report.json").read_text("utf-8"))["collections"]
    rows = {row["name"]: row["measures"] for row in collection["systems"]}
    assert all(each["mean"] <= 1 for row in rows.values() for each in row.values())
    assert rows["perfect order"]["RR"]["mean"] == 1
    return {name: row["RR"]["mean"] for name, row in rows.items() if name in collapses}


@pytest.mark.parametrize(
    "by", ["parent", {"field": "of"}, {"column": "parent"}, {"split": "#"}], ids=str
)
def test_each_place_of_parents_gives_one_document_a_place(by: object, capsys: Capture) -> None:
    values = evaluate(
        capsys,
        fused={"by": by, "score": "max"},
        list={"by": by, "score": "max", "place": "each list"},
        summed={"by": by, "score": "sum"},
    )
    assert values == {"fused": 1 / 2, "list": 1 / 2, "summed": 1 / 3}


def test_chunks_are_kept_where_chunks_are_judged(capsys: Capture) -> None:
    write("qrels.tsv", "query\tdocument\tgrade\n" + "".join(f"{q}\tB#0\t1\n" for q in QUERIES))
    values = evaluate(capsys, chunks=None, kept={"by": "parent", "keep": 1})
    assert values == {"chunks": 1 / 3, "kept": 1 / 2}
    with pytest.raises(AssertionError) as refused:
        evaluate(capsys, merged={"by": "parent", "score": "max"})
    assert "The judgments name chunks, and these systems return documents: merged." in str(
        refused.value
    )
    assert "Write 'keep: 1'" in str(refused.value)


def test_results_of_the_other_kind_are_refused_with_what_to_write(capsys: Capture) -> None:
    merged = {"by": "parent", "score": "max"}
    with pytest.raises(AssertionError) as refused:
        evaluate(capsys, merged=merged, chunks=None, kept={"by": "parent", "keep": 1})
    text = "The judgments name documents, and these systems return chunks: chunks, kept."
    assert f"{text} Write 'collapse: {{by: parent, score: max}}' there." in str(refused.value)
    with pytest.raises(AssertionError) as refused:
        evaluate(capsys, chunks=None)
    assert "1 of 5 hold" in str(refused.value)
    remedy = 'collapse: {by: {split: "#"}, score: max}'
    assert f"write '{remedy}' in each system" in str(refused.value)
    assert evaluate(capsys, mended={"by": {"split": "#"}, "score": "max"}) == {"mended": 1 / 2}


def test_a_chunk_without_a_parent_is_an_error_or_its_own(capsys: Capture) -> None:
    rows = Path("chunks.csv").read_text("utf-8").replace("B#0", "B")
    write("chunks.csv", rows)
    with pytest.raises(AssertionError, match="chunk 'B' of query 'q0'"):
        evaluate(capsys, merged={"by": {"split": "#"}, "score": "max"})
    rule = {"by": {"split": "#"}, "score": "max", "orphans": "own"}
    assert evaluate(capsys, merged=rule) == {"merged": 1 / 2}


def test_a_chunk_with_two_parents_and_a_missing_column_are_errors(capsys: Capture) -> None:
    rows = Path("chunks.csv").read_text("utf-8").replace("q5,B#0,7,B", "q5,B#0,7,C")
    write("chunks.csv", rows)
    with pytest.raises(AssertionError, match="'B#0' has the parents 'B'"):
        evaluate(capsys, merged={"by": {"column": "parent"}, "score": "max"})
    with pytest.raises(AssertionError, match="in field 'doc'"):
        evaluate(capsys, merged={"by": {"field": "doc"}, "score": "max"})


def test_a_list_that_repeats_documents_is_read_with_collapse(capsys: Capture) -> None:
    rule = {"by": "id", "place": "each list", "score": "max"}
    write_dataset("again.csv")
    with pytest.raises(AssertionError, match="'collapse: max', if"):
        evaluate(capsys, plain=None)
    assert evaluate(capsys, merged=rule) == {"merged": 1 / 2}
    assert evaluate(capsys, merged={**rule, "score": "sum"}) == {"merged": 1 / 3}
    with pytest.raises(AssertionError, match="one score in"):
        evaluate(capsys, merged=rule, other={**rule, "score": "sum"})
    write_dataset("again.csv", collapse="max")
    assert evaluate(capsys, plain=None, merged=rule) == {"plain": 1 / 2, "merged": 1 / 2}
    assert main(["dataset", "check", "dataset.yaml"]) == 0
    assert "12 further rows" in capsys.readouterr().out


def test_collapse_and_on_duplicate_exclude_each_other(capsys: Capture) -> None:
    write_dataset("again.csv", collapse="max", on_duplicate="best_rank")
    with pytest.raises(AssertionError, match="exclude each other"):
        evaluate(capsys, plain=None)
    write_dataset("again.csv", on_duplicate="best_rank")
    with pytest.raises(AssertionError, match="delete on_duplicate"):
        evaluate(capsys, merged={"by": "id", "place": "each list", "score": "max"})


def test_explain_names_the_chunk_of_a_document_and_why(capsys: Capture) -> None:
    evaluate(capsys, merged={"by": "parent", "score": "sum"})
    assert main(["explain", "e.yaml", "q0"]) == 0
    out = capsys.readouterr().out
    assert "the sum of " in out
    assert "- A: chunk A#0 stands for it, rank 1 in fused list; further chunks: A#1" in out
    assert "stage fused list: Ranking" in out
    assert main(["explain", "e.yaml", "q0", "B", "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert {each["document"]: each["chunks"][0]["id"] for each in shown}["B"] == "B#0"


def test_diagnose_counts_documents_that_are_collapsed(capsys: Capture) -> None:
    evaluate(capsys, merged={"by": "parent", "score": "max"})
    assert main(["diagnose", "e.yaml", "--json"]) == 0
    [collection] = json.loads(capsys.readouterr().out)["collections"]
    [misses] = [each for each in collection["systems"][0]["counts"] if each["kind"] == "miss"]
    assert (misses["failures"], misses["exposed"]) == (0, len(QUERIES))
