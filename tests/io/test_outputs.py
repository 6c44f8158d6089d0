"""Files that are written: outputs, their provenance, runs."""

import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from fusion_bench.errors import ConfigError, DataError, UnknownNameError
from fusion_bench.io.dataset import load_dataset
from fusion_bench.io.dataset_config import documents_of
from fusion_bench.io.json_objects import load_documents
from fusion_bench.io.load_records import load_run
from fusion_bench.io.outputs import (
    RECORD,
    guard_outputs,
    is_earlier_output,
    record_output,
    refuse_inputs,
    write_output,
    write_outputs,
)
from fusion_bench.io.provenance import FUSED_ORDER, ListMeta, meta_path, read_meta
from fusion_bench.io.write_run import RunRows, encode_run, find_writer
from fusion_bench.util.files import write_atomic
from tests import tiny
from tests.tiny import DATASET, edit


@contextmanager
def naming(path: Path, *inputs: Path, force: bool = False) -> Iterator[Path]:
    with guard_outputs({"--out": path}, inputs, is_forced=force, checked={"--out"}):
        yield path


def test_an_earlier_output_is_replaced_and_an_edited_one_is_not(tmp_path: Path) -> None:
    path = tmp_path / "new" / "a.md"
    for data in (b"one", b"two", b"one"):
        with naming(path):
            write_output(path, data)
    lines = [json.loads(line) for line in (path.with_name(RECORD)).read_bytes().splitlines()]
    assert [line["file"] for line in lines] == ["a.md", "a.md"]
    assert is_earlier_output(path)
    path.write_bytes(b"one, edited")
    with pytest.raises(ConfigError, match=r"a\.md.*--force"), naming(path):
        pass
    with naming(path, force=True):
        write_output(path, b"three")
    with naming(path):
        write_output(path, b"four")


def test_a_copy_is_no_output_and_python_replaces_what_it_names(tmp_path: Path) -> None:
    with naming(tmp_path / "a"):
        write_output(tmp_path / "a", b"x")
    (tmp_path / "b").write_bytes(b"x")
    assert not is_earlier_output(tmp_path / "b")
    (tmp_path / "a").write_bytes(b"mine")
    write_output(tmp_path / "a", b"x")
    assert is_earlier_output(tmp_path / "a")


def test_an_input_stays_though_a_command_wrote_it(tmp_path: Path) -> None:
    path = tmp_path / "a"
    write_output(path, b"x")
    (tmp_path / "link").symlink_to(path)
    for name in (path, tmp_path / "link"):
        with (
            pytest.raises(ConfigError, match="replace an input"),
            naming(name, path, force=True),
        ):
            pass
    with naming(path), pytest.raises(ConfigError, match="replace an input"):
        refuse_inputs([None, tmp_path])


def test_a_damaged_line_of_the_record_says_nothing(tmp_path: Path) -> None:
    path = tmp_path / "a"
    (tmp_path / RECORD).write_bytes(b'{"file": "a"\n[1]\n{"file": ["a"]}\n\xff\n')
    write_output(path, b"x")
    assert is_earlier_output(path)


def test_files_are_checked_before_one_is_written_and_named_once(tmp_path: Path) -> None:
    (tmp_path / "b").write_bytes(b"mine")
    with (
        guard_outputs({"--out": tmp_path}, (), is_forced=False),
        pytest.raises(ConfigError, match="b is there"),
    ):
        write_outputs(tmp_path, {"a": b"1", "b": b"2"})
    assert [path.name for path in tmp_path.iterdir()] == ["b"]
    names = {"--out": tmp_path / "a", "--records": tmp_path / "." / "a"}
    with (
        pytest.raises(ConfigError, match="--out, --records:"),
        guard_outputs(names, (), is_forced=True),
    ):
        pass


def test_what_belongs_to_a_dataset_stays(tmp_path: Path) -> None:
    folder = tiny.make(tmp_path) / "datasets/tiny"
    record_output(folder / "a.trec", (folder / "a.trec").read_bytes())
    (folder / "judgments").mkdir()
    tiny.edit(tmp_path, tiny.DATASET, "a.trec", "a*.trec")
    for name in ("dataset.yaml", "qrels.txt", "a.trec", "a-2.trec", "judgments/new.csv"):
        with (
            pytest.raises(ConfigError, match="of the files"),
            naming(folder / name, force=True) as path,
        ):
            write_output(path, b"x")
    path = folder / "judgments/qrels.txt"
    with guard_outputs({"--write-qrels": path}, (), is_forced=False):
        write_output(path, b"x", is_owned=True)
    with naming(folder / "notes.md") as path:
        write_output(path, b"x")
    (folder / "dataset.yaml").write_text("runs: [", encoding="utf-8")
    with pytest.raises(ConfigError, match="of the files"), naming(folder / "b.trec"):
        pass


def beside(root: Path, **changed: object) -> Path:
    """A provenance record beside the tiny dataset's rerank list; returns the list."""
    path = root / "datasets/tiny/r.trec"
    meta = ListMeta(
        list_sha256=hashlib.sha256(path.read_bytes()).hexdigest(),
        created="2026-01-01T00:00:00+00:00",
        dataset="tiny",
        system="one",
        depth=50,
        score_space="unit",
        asked="cohere/m",
        providers={"cohere/m": ("q1", "q3"), "tei/n": ("q4",), FUSED_ORDER: ("q2",)},
        degraded={"q4": "connection", "q2": "timeout"},
    ).model_copy(update=changed)
    meta_path(path).write_text(meta.model_dump_json(), encoding="utf-8")
    return path


def test_degraded_queries_are_named_and_a_record_of_another_list_is_refused(tmp_path: Path) -> None:
    root = tiny.make(tmp_path)
    assert load_dataset(root / DATASET).degraded("r") == ()
    beside(root)
    dataset = load_dataset(root / DATASET)
    assert dataset.degraded("r") == ("q2", "q4")
    assert dataset.provenance["r"].asked == "cohere/m"
    with pytest.raises(UnknownNameError, match=r"tiny:.*'x' \(known:"):
        dataset.degraded("x")
    edit(root, "datasets/tiny/r.trec", "q1 Q0 d1 1 0.9 r", "q1 Q0 d1 1 0.8 r")
    with pytest.raises(DataError, match=r"r\.trec\.meta\.json: "):
        load_dataset(root / DATASET)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("{", "not a provenance record"),
        ("[]", "a mapping of"),
        ('{"format_version": 9}', "input should be 1"),
        ('{"colour": 1}', "unknown key 'colour'"),
    ],
)
def test_a_damaged_record_is_refused(tmp_path: Path, text: str, problem: str) -> None:
    path = beside(tiny.make(tmp_path))
    meta_path(path).write_text(text, encoding="utf-8")
    with pytest.raises(DataError, match=rf"r\.trec\.meta\.json: .*{problem}"):
        read_meta(path)


def test_documents_are_read_with_their_titles(tmp_path: Path) -> None:
    root = tiny.make(tmp_path)
    with pytest.raises(ConfigError, match="no 'documents'"):
        documents_of(root / DATASET)
    edit(root, DATASET, "qrels: qrels.txt\n", "qrels: qrels.txt\ndocuments: corpus.jsonl\n")
    (root / "datasets/tiny/corpus.jsonl").write_text(
        '{"_id": "d1", "title": "A", "text": "b"}\n{"id": 2, "title": "", "text": "c"}\n',
        encoding="utf-8",
    )
    assert {d.id: d.text for d in documents_of(root / DATASET).values()} == {"d1": "A b", "2": "c"}


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('{"text": "a"}', "1: a document"),
        ('{"id": "a"}', "1: a document"),
        ('{"id": "a", "text": "b"}\n{"id": "a", "text": "b"}', "2: document 'a' appears twice"),
        ('{"id": "a", "text": ["b"]}', "1: text must"),
        ("\n", "file is empty"),
    ],
)
def test_bad_documents_are_refused(tmp_path: Path, text: str, problem: str) -> None:
    path = tmp_path / "corpus.jsonl"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(DataError, match=problem):
        load_documents(path)


ROWS = RunRows(
    name="my system",
    queries=["q1", "q1", "q2"],
    documents=["d1", "dä", "d1"],
    ranks=[1, 2, 1],
    scores=[0.1 + 0.2, -1e-9, 5.0],
    sources={"a": ([2, None, 1], [0.5, None, 7.0])},
)


def write_run(path: Path, rows: RunRows) -> Path:
    return write_atomic(path, encode_run(path, rows))


@pytest.mark.parametrize(
    "name", ["f.trec", "f.RUN", "f.txt.gz", "f.jsonl", "f.ndjson.gz", "f.csv", "f.tsv", "f.parquet"]
)
def test_what_is_written_is_read_again_bit_by_bit(name: str, tmp_path: Path) -> None:
    rows = replace(ROWS, sources={}) if name.startswith(("f.t", "f.R")) else ROWS
    path = write_run(tmp_path / "new" / name, rows)
    read = load_run(path)
    assert read.to_dict() == {"q1": {"d1": 0.1 + 0.2, "dä": -1e-9}, "q2": {"d1": 5.0}}


def test_columns_of_trec_and_sources_where_they_have_the_document(tmp_path: Path) -> None:
    text = write_run(tmp_path / "f.trec", replace(ROWS, sources={})).read_text()
    assert text.splitlines()[0] == "q1 Q0 d1 1 0.30000000000000004 my-system"
    lines = write_run(tmp_path / "f.jsonl", ROWS).read_text().splitlines()
    assert json.loads(lines[0])["sources"] == {"a": {"rank": 2, "score": 0.5}}
    assert json.loads(lines[1])["sources"] == {}
    table = write_run(tmp_path / "f.csv", ROWS).read_text().splitlines()
    assert table[0] == "query,document,rank,score,a_rank,a_score"
    assert table[2] == "q1,dä,2,-1e-09,,"


def test_what_a_format_cannot_hold_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UnknownNameError, match=r"'.xlsx'.*\.csv"):
        find_writer(tmp_path / "f.xlsx")
    with pytest.raises(ConfigError, match="columns for sources"):
        find_writer(tmp_path / "f.trec", has_sources=True)
    with pytest.raises(ConfigError, match=r"leave out \.gz"):
        find_writer(tmp_path / "f.parquet.gz")
    with pytest.raises(DataError, match="document 'd 1' has blanks"):
        write_run(tmp_path / "f.trec", replace(ROWS, documents=["d 1", "d2", "d3"]))
    assert not list(tmp_path.iterdir())
