"""Where a rerank list comes from, and which of its queries are degraded."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from fusion_bench.errors import ConfigError, DataError, UnknownNameError
from fusion_bench.io.dataset import load_dataset
from fusion_bench.io.dataset_config import documents_of
from fusion_bench.io.json_objects import load_documents
from fusion_bench.io.provenance import FUSED_ORDER, ListMeta, meta_path, read_meta
from tests import tiny
from tests.tiny import DATASET, edit


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


def test_degraded_queries_are_named(tmp_path: Path) -> None:
    root = tiny.make(tmp_path)
    assert load_dataset(root / DATASET).degraded("r") == ()
    beside(root)
    dataset = load_dataset(root / DATASET)
    assert dataset.degraded("r") == ("q2", "q4")
    assert dataset.provenance["r"].asked == "cohere/m"
    with pytest.raises(UnknownNameError, match=r"tiny:.*'x' \(known:"):
        dataset.degraded("x")


def test_a_record_of_another_list_is_refused(tmp_path: Path) -> None:
    root = tiny.make(tmp_path)
    beside(root)
    edit(root, "datasets/tiny/r.trec", "q1 Q0 d1 1 0.9 r", "q1 Q0 d1 1 0.8 r")
    with pytest.raises(DataError, match=r"r\.trec\.meta\.json: "):
        load_dataset(root / DATASET)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("{", "not a provenance record"),
        ("[]", "a mapping of keys to values is needed"),
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
        ('{"text": "a"}', r"1: a document needs an 'id' and a 'text' \(found: text\)"),
        ('{"id": "a"}', r"1: a document needs an 'id' and a 'text' \(found: id\)"),
        ('{"id": "a", "text": "b"}\n{"id": "a", "text": "b"}', "2: document 'a' stands twice"),
        ('{"id": "a", "text": ["b"]}', r'1: text must be text, given \["b"\]'),
        ("\n", "the file is empty"),
    ],
)
def test_bad_documents_are_refused(tmp_path: Path, text: str, problem: str) -> None:
    path = tmp_path / "corpus.jsonl"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(DataError, match=problem):
        load_documents(path)
