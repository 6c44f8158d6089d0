"""A folder in the form of BEIR: ``corpus.jsonl``, ``queries.jsonl`` and ``qrels/SPLIT.tsv``.

Thakur et al. 2021, "BEIR: A Heterogeneous Benchmark for Zero-shot Evaluation of Information
Retrieval Models", arXiv:2104.08663. MTEB's older datasets have the same files, with ``.jsonl``
judgments.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from fusion_bench.datasets.collection import (
    Collection,
    CollectionDocument,
    Judgment,
    choose_splits,
    join_splits,
)
from fusion_bench.datasets.dataset_card import read_card
from fusion_bench.datasets.json_lines import collect_texts, iterate_objects, parse_document
from fusion_bench.errors import DataError
from fusion_bench.io.file_bytes import format_suffix, strip_suffixes
from fusion_bench.io.load_records import load_qrels
from fusion_bench.util.files.real_paths import resolve_path

#: Formats of judgments, the preferred one first.
QRELS_SUFFIXES = (".tsv", ".jsonl", ".trec", ".txt")


def read_beir_folder(folder: Path, splits: Sequence[str] = ()) -> Collection:
    """Read the queries and judgments of a folder.

    Args:
        folder: With the three parts; each file may be packed as ``.gz``.
        splits: The splits to read; empty = all.

    Raises:
        DataError: A part is missing, or a file breaks a rule.
    """
    corpus, queries = find_json_lines(folder, "corpus"), find_json_lines(folder, "queries")
    files = _find_qrels(folder / "qrels")
    chosen = choose_splits(str(folder / "qrels"), list(files), splits)
    texts = read_texts(queries)
    judgments = {name: read_judgments(files[name]) for name in chosen}
    judged, all_judgments = join_splits(str(folder), texts, judgments)
    card = read_card(folder)
    return Collection(
        name=resolve_path(folder).name,
        origin=str(folder),
        queries=judged,
        judgments=all_judgments,
        read_documents=lambda: _read_documents(corpus),
        license=card.license,
        counts={"queries": len(texts), "judgments": len(all_judgments)},
        stated=card.state_counts(chosen),
    )


def find_json_lines(folder: Path, name: str) -> Path:
    """``NAME.jsonl`` of a folder, packed or not.

    Raises:
        DataError: There is none.
    """
    for path in (folder / f"{name}.jsonl", folder / f"{name}.jsonl.gz"):
        if path.exists():
            return path
    raise DataError(
        f"{folder}: no {name}.jsonl: a folder of BEIR has corpus.jsonl, queries.jsonl and "
        "qrels/SPLIT.tsv"
    )


def read_texts(path: Path) -> dict[str, str]:
    """Query id → text of JSON Lines.

    Raises:
        DataError: A line breaks a rule, or an id stands twice.
    """
    return collect_texts(iterate_objects(path))


def read_judgments(path: Path) -> list[Judgment]:
    """The judgments of a file of any format that can be read."""
    qrels = load_qrels(path)
    return [
        Judgment(query, qrels.vocabulary[document], grade)
        for number, query in enumerate(qrels.queries)
        for document, grade in zip(
            qrels.documents[qrels.offsets[number] : qrels.offsets[number + 1]].tolist(),
            qrels.grades[qrels.offsets[number] : qrels.offsets[number + 1]].tolist(),
            strict=True,
        )
    ]


def _find_qrels(folder: Path) -> dict[str, Path]:
    """Name of each split → its file; of several formats of a split, the preferred one."""
    if not folder.is_dir():
        raise DataError(f"{folder}: no such folder: the judgments stand in qrels/SPLIT.tsv")
    files: dict[str, Path] = {}
    for path in sorted(folder.iterdir()):
        suffix = format_suffix(path)
        if suffix in QRELS_SUFFIXES and path.is_file():
            split = strip_suffixes(path)
            known = files.get(split)
            if known is None or _preference(path) < _preference(known):
                files[split] = path
    return files


def _preference(path: Path) -> int:
    return QRELS_SUFFIXES.index(format_suffix(path))


def _read_documents(path: Path) -> Iterator[CollectionDocument]:
    for where, item in iterate_objects(path):
        yield parse_document(item, where)
