"""Chunks collapsed to documents, as a user runs it."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

import fusion_bench as fb
from fusion_bench.cli import main
from fusion_bench.experiment.experiment import read_experiment
from fusion_bench.experiment.settings import TuneSettings
from fusion_bench.tune.objective import create_objective

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
    assert "return documents: merged." in str(refused.value)
    assert "Write 'keep: 1'" in str(refused.value)


def test_results_of_the_other_kind_are_refused_with_what_to_write(capsys: Capture) -> None:
    merged = {"by": "parent", "score": "max"}
    with pytest.raises(AssertionError) as refused:
        evaluate(capsys, merged=merged, chunks=None, kept={"by": "parent", "keep": 1})
    assert "return chunks: chunks, kept." in str(refused.value)
    assert "'collapse: {by: parent, score: max}'" in str(refused.value)
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


def test_a_document_ranks_by_the_score_of_its_first_chunk_whatever_its_rank(
    capsys: Capture,
) -> None:
    rows = ["query,document,rank,score"]
    for query in QUERIES:  # the chunk of A that ranks first has the least score
        rows += [f"{query},A#0,1,1", f"{query},B#0,2,5", f"{query},A#1,3,9"]
    write("chunks.csv", "\n".join(rows) + "\n")
    write_dataset(rank_from="column")
    rule = {"by": {"split": "#"}, "place": "each list"}
    values = evaluate(
        capsys,
        first={**rule, "score": "first"},
        greatest={**rule, "score": "max"},
        fused={**rule, "place": "fused", "score": "first"},  # by fused scores, which fall
    )
    assert values == {"first": 1, "greatest": 1 / 2, "fused": 1 / 2}
    write("again.csv", Path("chunks.csv").read_text("utf-8").replace("#0", "").replace("#1", ""))
    for score, value in {"first": 1, "max": 1 / 2}.items():
        write_dataset("again.csv", rank_from="column", collapse=score)
        assert evaluate(capsys, plain=None) == {"plain": value}


def read_collection() -> dict[str, Any]:
    [collection] = json.loads(Path("reports/e/report.json").read_text("utf-8"))["collections"]
    found: dict[str, Any] = collection
    return found


def test_other_parents_are_other_data(capsys: Capture) -> None:
    split = {"by": {"split": "#"}, "score": "max"}
    evaluate(capsys, plain=split)
    plain = read_collection()
    assert not [part for part in plain["digests"] if "parents" in part]
    rule = {"by": {"field": "of"}, "score": "max"}
    evaluate(capsys, plain=split, merged=rule)
    before = read_collection()
    assert before["fingerprint"] != plain["fingerprint"]
    text = Path("documents.jsonl").read_text("utf-8")
    write("documents.jsonl", text + '{"id": "D#0", "text": "in no list", "of": "D"}\n')
    evaluate(capsys, plain=split, merged=rule)
    assert read_collection()["fingerprint"] == before["fingerprint"]
    write("documents.jsonl", text.replace('"of": "C"', '"of": "A"'))
    evaluate(capsys, plain=split)
    assert read_collection()["fingerprint"] == plain["fingerprint"]
    evaluate(capsys, plain=split, merged=rule)
    after = read_collection()
    changed = [key for key in after["digests"] if after["digests"][key] != before["digests"][key]]
    assert changed == ["parents by {field: 'of'}"]
    assert after["fingerprint"] != before["fingerprint"]
    # What a search writes beside its trials, and resumes them by.
    experiment, source = read_experiment(Path("e.yaml"))
    dataset = fb.load_dataset("dataset.yaml")
    contents = {
        name: create_objective(experiment, source, TuneSettings(system=name), dataset).contents
        for name in ("plain", "merged")
    }
    assert contents["plain"] == dataset.contents
    assert contents["merged"].parts.items() - dataset.contents.parts.items() == {
        ("parents by {field: 'of'}", after["digests"]["parents by {field: 'of'}"])
    }


def gate(capsys: Capture, by: dict[str, str], *words: str) -> tuple[int, str]:
    system = {"runs": ["a"], "collapse": {"by": by, "score": "max"}}
    policy = {"system": "merged", "checks": {"RR": {"max_drop": 0.1}}}
    experiment = {"dataset": "dataset.yaml", "baseline": "merged", "measures": ["RR"]}
    write("e.yaml", json.dumps({**experiment, "systems": {"merged": system}, "gate": policy}))
    capsys.readouterr()
    return main(["gate", "e.yaml", "--allow-suspect", *words]), capsys.readouterr().err


def test_a_gate_notices_other_parents_and_takes_another_rule(capsys: Capture) -> None:
    field = {"field": "of"}
    assert gate(capsys, field, "--update", "--anchor", "--reason", "first")[0] == 0
    assert gate(capsys, field) == (0, "")
    assert gate(capsys, {"split": "#"}) == (0, "")
    text = Path("documents.jsonl").read_text("utf-8")
    write("documents.jsonl", text.replace('"of": "C"', '"of": "A"'))
    code, err = gate(capsys, field)
    assert code
    assert "contents of parents by {field: 'of'} changed" in err


@pytest.mark.parametrize(
    ("rule", "chunks", "documents", "counts"),
    [
        ({"score": "max"}, ["A#0", "B#0", "C#0"], ["A", "B", "C"], [2, 1, 2]),
        ({"keep": 1}, ["A#0", "B#0", "C#0"], ["A", "B", "C"], [2, 1, 2]),
        ({"score": "sum", "place": "each list"}, ["A#0", "C#0", "B#0"], ["A", "C", "B"], [2, 2, 1]),
    ],
)
def test_details_name_the_chunk_of_each_document(
    rule: dict[str, Any], chunks: list[str], documents: list[str], counts: list[int]
) -> None:
    if "keep" in rule:
        rows = Path("qrels.tsv").read_text("utf-8").replace("B", "B#0")
        write("qrels.tsv", rows)
    system = {"runs": ["a"], "collapse": {"by": "parent", **rule}}
    collection = fb.compare("dataset.yaml", systems={"merged": system}, measures=["RR"]).details()
    [top] = collection.to_dict()["top"]
    assert top["query"][:3] == [0] * 3
    assert top["chunks"][:3] == [*map(list, zip(chunks, documents, counts, strict=True))]
    assert collection.document_texts["B#0"] == "B#0"
    plain = fb.compare("dataset.yaml", runs=["a"], measures=["RR"], allow_unmatched=True)
    assert "chunks" not in plain.details().to_dict()["top"][0]


def test_explain_names_the_chunk_of_a_document_and_why(capsys: Capture) -> None:
    evaluate(capsys, merged={"by": "parent", "score": "sum"})
    assert main(["explain", "e.yaml", "q0"]) == 0
    out = capsys.readouterr().out
    assert "the sum of " in out
    assert "- A: chunk A#0 " in out
    assert "further chunks: A#1" in out
    assert "fused list: Ranking" in out
    assert main(["explain", "e.yaml", "q0", "B", "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert {each["document"]: each["chunks"][0]["id"] for each in shown}["B"] == "B#0"


def test_diagnose_counts_documents_that_are_collapsed(capsys: Capture) -> None:
    evaluate(capsys, merged={"by": "parent", "score": "max"})
    assert main(["diagnose", "e.yaml", "--json"]) == 0
    [collection] = json.loads(capsys.readouterr().out)["collections"]
    [misses] = [each for each in collection["systems"][0]["counts"] if each["kind"] == "miss"]
    assert (misses["failures"], misses["exposed"]) == (0, len(QUERIES))
