"""``dataset add``: collections in the forms in which they are published."""

import gzip
import json
import re
import shutil
from pathlib import Path

import pytest

from fusion_bench.cli import main
from fusion_bench.importers.collection_folders import list_judgments, read_card
from fusion_bench.io.json_objects import load_documents, load_queries
from fusion_bench.io.load_records import load_qrels
from tests.importers.datasets.collections import CARD, DOCUMENTS, QRELS, make_beir, make_mteb

Capture = pytest.CaptureFixture[str]


def add(capsys: Capture, *words: str) -> dict[str, object]:
    assert main(("dataset", "add", *words, "--json")) == 0
    record: dict[str, object] = json.loads(capsys.readouterr().out)
    return record


def refuse(capsys: Capture, *words: str) -> str:
    assert main(("dataset", "add", *words)) == 2
    return capsys.readouterr().err


def check_files(out: Path) -> None:
    documents = load_documents(out / "documents.jsonl")
    assert {name: each.text for name, each in documents.items()} == {
        row["_id"]: f"{row['title']} {row['text']}".strip() for row in DOCUMENTS
    }
    queries = load_queries(out / "queries.jsonl")
    assert {q.id: (q.text, q.split) for q in queries.values()} == {
        "q1": ("storm", "test"),
        "q2": ("calm", "dev"),
    }
    assert sorted(list_judgments(load_qrels(out / "qrels.txt"))) == sorted(
        row for rows in QRELS.values() for row in rows
    )


def test_a_folder_of_beir(tmp_path: Path, capsys: Capture) -> None:
    place = f"beir:{make_beir(tmp_path / 'tiny')}"
    record = add(capsys, place, "--out", str(tmp_path / "out"))
    assert record["counts"] == {
        "queries": 2,
        "unjudged_queries": 1,
        "judgments": 3,
        "documents": 3,
    }
    check_files(tmp_path / "out")


def test_packed_files_and_one_split(tmp_path: Path, capsys: Capture) -> None:
    """One split needs no name in the queries."""
    folder = make_beir(tmp_path / "tiny")
    (folder / "corpus.jsonl.gz").write_bytes(gzip.compress((folder / "corpus.jsonl").read_bytes()))
    (folder / "corpus.jsonl").unlink()
    record = add(capsys, f"beir:{folder}", "--out", str(tmp_path / "out"), "--split", "test")
    assert record["counts"]["judgments"] == 2  # type: ignore[index]
    assert load_queries(tmp_path / "out/queries.jsonl")["q1"].split is None


def test_parquet_in_the_cache_of_the_hub(tmp_path: Path, capsys: Capture) -> None:
    """The revision that refs/main names, with the license and the counts of its card."""
    hub = tmp_path / "datasets--mteb--tiny"
    make_mteb(hub / "snapshots/b")
    (hub / "snapshots/a").mkdir()
    (hub / "refs").mkdir()
    (hub / "refs/main").write_text("b")
    record = add(capsys, f"mteb:{hub}", "--out", str(tmp_path / "out"))
    assert (record["name"], record["license"]) == ("tiny", "cc-by-sa-4.0")
    assert record["compared"] == ["judgments", "documents"]
    check_files(tmp_path / "out")


def test_two_revisions_and_no_main(tmp_path: Path, capsys: Capture) -> None:
    for name in ("a", "b"):
        (tmp_path / "hub/snapshots" / name).mkdir(parents=True)
    err = refuse(capsys, f"mteb:{tmp_path / 'hub'}", "--out", str(tmp_path / "out"))
    assert "2 revisions" in err


def test_a_count_that_differs(tmp_path: Path, capsys: Capture) -> None:
    folder = make_mteb(tmp_path / "tiny")
    (folder / "README.md").write_text(CARD.replace("num_examples: 3", "num_examples: 4"))
    words = (f"mteb:{folder}", "--out", str(tmp_path / "out"))
    err = refuse(capsys, *words)
    assert re.search("3 documents .* 4 are stated", err)
    assert not (tmp_path / "out").exists()
    assert main(("dataset", "add", *words, "--any-counts")) == 0
    assert "stated: documents" in capsys.readouterr().out
    shutil.rmtree(tmp_path / "out")
    record = add(capsys, *words, "--any-counts")
    assert (record["compared"], record["differing"]) == (["judgments", "documents"], ["documents"])
    assert any("4 are stated" in str(note) for note in record["notes"])  # type: ignore[attr-defined]


def test_a_judged_document_that_is_not_there(tmp_path: Path, capsys: Capture) -> None:
    folder = make_beir(tmp_path / "tiny")
    with (folder / "qrels/test.tsv").open("a") as file:
        file.write("q1\td9\t1\n")
    record = add(capsys, f"beir:{folder}", "--out", str(tmp_path / "out"))
    assert any("1 judged document" in str(note) for note in record["notes"])  # type: ignore[attr-defined]


def replace_text(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def test_broken_folders(tmp_path: Path, capsys: Capture) -> None:
    breaches = [
        ("corpus.jsonl", '"d2"', '"d1"', "document 'd1' appears twice"),
        ("corpus.jsonl", '"text": "A calm sea."', '"body": 1', "corpus.jsonl:2: a document"),
        ("corpus.jsonl", '{"_id": "d3"', '["d3"', "jsonl:3: not JSON"),
        ("queries.jsonl", '"q2"', '"q1"', "queries.jsonl:2: query"),
        ("queries.jsonl", '"q2"', '"q4"', "(for example 'q2')"),
        ("qrels/dev.tsv", "q2\td2", "q1\td2", "'dev' and 'test'"),
        ("qrels/dev.tsv", "\t1", "\tnan", "qrels/dev.tsv:2"),
        ("qrels/dev.tsv", "q2\td2", "q2\td 2", "a blank in"),
    ]
    for number, (name, old, new, message) in enumerate(breaches):
        folder = make_beir(tmp_path / f"tiny{number}")
        replace_text(folder / name, old, new)
        err = refuse(capsys, f"beir:{folder}", "--out", str(tmp_path / f"out{number}"))
        assert message in err, (name, err)
        assert "Traceback" not in err


def test_missing_parts(tmp_path: Path, capsys: Capture) -> None:
    out = ("--out", str(tmp_path / "out"))
    assert "ir_datasets:ID" in refuse(capsys, "scifact", *out)
    assert "no such folder" in refuse(capsys, f"beir:{tmp_path / 'none'}", *out)
    folder = make_beir(tmp_path / "tiny")
    assert "(known: dev, test)" in refuse(capsys, f"beir:{folder}", *out, "--split", "train")
    (folder / "queries.jsonl").unlink()
    assert "no queries.jsonl" in refuse(capsys, f"beir:{folder}", *out)
    parquet = make_mteb(tmp_path / "mteb")
    next((parquet / "queries").iterdir()).write_bytes(b"PAR1")
    assert "read as Parquet" in refuse(capsys, f"mteb:{parquet}", *out)


def test_nothing_is_overwritten(tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out/qrels.txt").write_text("mine")
    place = f"beir:{make_beir(tmp_path / 'tiny')}"
    assert "name another folder" in refuse(capsys, place, "--out", str(tmp_path / "out"))
    assert (tmp_path / "out/qrels.txt").read_text() == "mine"


def test_cards_that_state_nothing(tmp_path: Path) -> None:
    texts = [
        "",
        "# Only a title",
        "---\n[1]\n---\n",
        "---\na: [\n---\n",
        "---\ndataset_info: 3\n---\n",
    ]
    for text in texts:
        (tmp_path / "README.md").write_text(text)
        assert read_card(tmp_path) == ("", {})


@pytest.fixture
def library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A dataset in the registry of ir_datasets, from its own readers of local files."""
    monkeypatch.setenv("IR_DATASETS_HOME", str(tmp_path / "cache"))
    import ir_datasets

    files = {
        "docs.tsv": "d1\tThe gale moves ships.\nd2\tA calm sea.\n",
        "queries.tsv": "q1\tstorm\nq2\tcalm\n",
        "qrels.txt": "q1 0 d1 2\nq2 0 d2 1\n",
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    dataset = ir_datasets.create_dataset(
        docs_tsv=str(tmp_path / "docs.tsv"),
        queries_tsv=str(tmp_path / "queries.tsv"),
        qrels_trec=str(tmp_path / "qrels.txt"),
    )
    name = f"tiny-{tmp_path.name}"
    ir_datasets.registry.register(name, dataset)
    return name


def test_a_dataset_of_the_library(library: str, tmp_path: Path, capsys: Capture) -> None:
    record = add(capsys, f"ir_datasets:{library}", "--out", str(tmp_path / "out"))
    assert record["counts"] == {"queries": 2, "unjudged_queries": 0, "judgments": 2, "documents": 2}
    assert "no license" in record["notes"][0]  # type: ignore[index]
    assert load_documents(tmp_path / "out/documents.jsonl")["d2"].text == "A calm sea."


def test_a_damaged_cache_of_the_library(library: str, tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "docs.tsv").write_bytes(b"d1\xff\xfe\n")
    err = refuse(capsys, f"ir_datasets:{library}", "--out", str(tmp_path / "out"))
    assert "cannot read it" in err
    assert "Delete" in err
    assert not (tmp_path / "out").exists()


def test_the_library_downloads_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    """What its cache lacks is named, with the option that allows it to be downloaded."""
    monkeypatch.setenv("IR_DATASETS_HOME", str(tmp_path / "cache"))
    err = refuse(capsys, "ir_datasets:beir/scifact/test", "--out", str(tmp_path / "out"))
    assert "would download http" in err
    assert "--download" in err
    assert not (tmp_path / "out/dataset.yaml").exists()


def test_unknown_datasets_of_the_library(tmp_path: Path, capsys: Capture) -> None:
    out = ("--out", str(tmp_path / "out"))
    err = refuse(capsys, "ir_datasets:beir/scifakt", *out)
    assert "'beir/scifakt'" in err
    err = refuse(capsys, "ir_datasets:beir/scifact", *out, "--split", "validation")
    assert "'validation' (parts" in err


def test_the_dataset_has_no_list_yet(tmp_path: Path, capsys: Capture) -> None:
    """It is listed, shown and checked, and an experiment says that the list is missing."""
    place = f"beir:{make_beir(tmp_path / 'tiny')}"
    add(capsys, place, "--out", str(tmp_path / "datasets/out"))
    path = tmp_path / "datasets/out/dataset.yaml"
    for words in (("list", "--datasets", str(tmp_path / "datasets")), ("show", str(path))):
        assert main(("dataset", *words)) == 0
    assert main(("dataset", "check", str(path))) == 0
    assert "no ranked list" in capsys.readouterr().out
    experiment = tmp_path / "experiment.yaml"
    experiment.write_text(f"dataset: {path}\nbaseline: a\nsystems:\n  a: {{runs: [a]}}\n")
    assert main(("eval", str(experiment))) == 2
    assert "run 'a' (known: none)" in capsys.readouterr().err
