"""A published test collection, written as a dataset's folder."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

from fusion_bench.config.yaml_files import format_yaml
from fusion_bench.errors import DataError
from fusion_bench.io.dataset_config import make_dataset_name
from fusion_bench.util.files import (
    make_write_error,
    open_atomic,
    remove_on_failure,
    require_free,
    write_atomic,
)
from fusion_bench.util.formatting import Columns, TableView, pluralize
from fusion_bench.util.json_text import encode_json_lines

#: What is counted, in the order in which it is shown.
COUNTED = ("queries", "judgments", "documents")
#: Query, document, grade.
CollectionJudgment: TypeAlias = tuple[str, str, int]
#: Id, title (empty where it has none) and text of a document.
CollectionDocument: TypeAlias = tuple[str, str, str]


@dataclass(frozen=True)
class ImportedCollection:
    """A test collection, read as far as its queries and judgments.

    Attributes:
        name: A name for the dataset.
        origin: Where it comes from, for the description.
        queries: The judged queries: id, text, split (empty where there is one part only).
        judgments: Their judgments.
        read_documents: Reads the documents, one after the other.
        license: Its terms; empty where nothing states them.
        counts: What was read: ``queries`` (judged or not) and ``judgments``.
        stated: What its makers say of these and of ``documents``.
        notes: What a user should know.
    """

    name: str
    origin: str
    queries: Sequence[tuple[str, str, str]]
    judgments: Sequence[CollectionJudgment]
    read_documents: Callable[[], Iterator[CollectionDocument]]
    license: str = ""
    counts: Mapping[str, int] = field(default_factory=dict)
    stated: Mapping[str, int] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


def join_splits(
    where: str, texts: Mapping[str, str], splits: Mapping[str, Sequence[CollectionJudgment]]
) -> tuple[list[tuple[str, str, str]], list[CollectionJudgment]]:
    """The judged queries and the judgments of a collection's splits.

    Args:
        where: Prefix of a message.
        texts: Query id → text.
        splits: Name of a split → its judgments.

    Raises:
        DataError: A judged query has no text, or two splits judge one query.
    """
    split_of: dict[str, str] = {}
    for split, judgments in splits.items():
        for query in dict.fromkeys(query for query, _, _ in judgments):
            if query in split_of:
                raise DataError(
                    f"{where}: query {query!r} is judged in the splits {split_of[query]!r} and "
                    f"{split!r}: name the splits to add with --split"
                )
            split_of[query] = split
    missing = [query for query in split_of if query not in texts]
    if missing:
        raise DataError(
            f"{where}: {pluralize(len(missing), 'judged query')} without a text (for example "
            f"{missing[0]!r}): the queries and the judgments have to belong together"
        )
    is_whole = len(splits) == 1
    queries = [
        (query, texts[query], "" if is_whole else split) for query, split in split_of.items()
    ]
    return queries, [judgment for each in splits.values() for judgment in each]


def list_differing(
    collection: ImportedCollection, counts: Mapping[str, int]
) -> dict[str, tuple[int, int]]:
    """What was counted and what is stated, where they differ, by what is counted.

    Args:
        collection: With the stated counts.
        counts: What was read; what is not among them is not compared.
    """
    pairs = {
        what: (counts[what], collection.stated.get(what)) for what in COUNTED if what in counts
    }
    return {
        what: (count, stated)
        for what, (count, stated) in pairs.items()
        if stated is not None and stated != count
    }


def check_counts(collection: ImportedCollection, counts: Mapping[str, int]) -> None:
    """Compare what was read with what the collection's makers state.

    Args:
        collection: With the stated counts.
        counts: What was read; what is not among them is not compared.

    Raises:
        DataError: A count differs.
    """
    for what, (count, stated) in list_differing(collection, counts).items():
        raise DataError(
            f"{collection.origin}: {count:,} {what} were read, and {stated:,} are stated: the "
            "copy is incomplete or another version. Copy it again, or pass --any-counts"
        )


DATASET_FILE, QRELS_FILE = "dataset.yaml", "qrels.txt"
QUERIES_FILE, DOCUMENTS_FILE = "queries.jsonl", "documents.jsonl"
FILES = (DATASET_FILE, QRELS_FILE, QUERIES_FILE, DOCUMENTS_FILE)
#: How often the progress of the documents is told.
DOCUMENTS_A_STEP = 5_000


@dataclass(frozen=True, repr=False)
class AddedDataset(TableView):
    """What was written of a collection.

    Attributes:
        name: The dataset's name.
        license: Its terms; empty where nothing states them.
        counts: ``queries`` (judged), ``judgments``, ``documents``, and ``unjudged_queries``.
        compared: What was compared with the count that the collection's makers state.
        differing: What of these differs.
        notes: What a user should know.
        files: What was written, the ``dataset.yaml`` first.
    """

    name: str
    license: str
    counts: Mapping[str, int]
    compared: tuple[str, ...]
    differing: tuple[str, ...]
    notes: tuple[str, ...]
    files: tuple[Path, ...]

    def _summary(self) -> str:
        return (
            f"AddedDataset({self.name!r}, license {self.license or 'not stated'}: {self.files[0]})"
        )

    def _table_columns(self, limit: int | None = None) -> Columns:
        """One row a kind of record."""
        rows = [*self.counts.items()][:limit]
        return {"records": [name for name, _ in rows], "count": [count for _, count in rows]}


def write_collection(
    collection: ImportedCollection,
    folder: Path,
    *,
    name: str | None = None,
    any_counts: bool = False,
    progress: Callable[[str, int, int], None] = lambda *_: None,
) -> AddedDataset:
    """Write a collection as a dataset without lists.

    Args:
        collection: The collection.
        folder: Where to; created if missing.
        name: The dataset's name; by default the collection's.
        any_counts: Accept counts that differ from the stated ones.
        progress: Called as documents are written.

    Raises:
        ConfigError: The folder holds a dataset already.
        DataError: A count differs from the stated one, or a document's id stands twice.
        FusionBenchError: The folder cannot be written to.
    """
    require_free(folder, FILES)
    if not any_counts:
        check_counts(collection, collection.counts)
    title = make_dataset_name(name or collection.name, "added")
    paths = [folder / each for each in FILES]
    with remove_on_failure() as new:
        new += [folder] if not folder.exists() else [path for path in paths if not path.exists()]
        ids = _write_documents(folder / DOCUMENTS_FILE, collection, progress)
        counts = {**collection.counts, "documents": len(ids)}
        if not any_counts:
            check_counts(collection, counts)
        notes = (*collection.notes, *_list_notes(collection, counts, ids))
        write_atomic(folder / QRELS_FILE, _qrels_text(collection).encode())
        write_atomic(folder / QUERIES_FILE, _encode_queries(collection))
        write_atomic(folder / DATASET_FILE, _dataset_text(collection, title).encode())
    judged = len(collection.queries)
    return AddedDataset(
        name=title,
        license=collection.license,
        counts={
            "queries": judged,
            "unjudged_queries": counts["queries"] - judged,
            "judgments": counts["judgments"],
            "documents": counts["documents"],
        },
        compared=tuple(collection.stated),
        differing=tuple(list_differing(collection, counts)),
        notes=notes,
        files=tuple(paths),
    )


def _write_documents(
    path: Path, collection: ImportedCollection, progress: Callable[[str, int, int], None]
) -> set[str]:
    """Write the documents as they are read; returns their ids."""
    ids: set[str] = set()
    expected = collection.stated.get("documents", 0)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with open_atomic(path) as file:
            for name, title, text in collection.read_documents():
                if name in ids:
                    raise DataError(
                        f"{collection.origin}: document {name!r} stands twice: keep one"
                    )
                ids.add(name)
                titled = {"title": title} if title else {}
                file.write(encode_json_lines([{"id": name, **titled, "text": text}]))
                if len(ids) % DOCUMENTS_A_STEP == 0:
                    progress("writing the documents", len(ids), max(expected, len(ids)))
    except OSError as error:
        raise make_write_error(path, error) from error
    if not ids:
        raise DataError(f"{collection.origin}: no documents: at least one is needed")
    return ids


def _list_notes(
    collection: ImportedCollection, counts: Mapping[str, int], ids: set[str]
) -> Iterator[str]:
    if not collection.license and not collection.notes:
        yield "no license is stated: find the collection's terms before you share anything of it"
    absent = {document for _, document, _ in collection.judgments} - ids
    if absent:
        yield (
            f"{pluralize(len(absent), 'judged document')} not in the collection (for example "
            f"{min(absent)!r}): no system can return them"
        )
    for what, (count, stated) in list_differing(collection, counts).items():
        yield f"{count:,} {what} were read, and {stated:,} are stated"


def _qrels_text(collection: ImportedCollection) -> str:
    for query, document, _ in collection.judgments:
        for each in (query, document):
            if each != "".join(each.split()):
                raise DataError(
                    f"{collection.origin}: the id {each!r} has a blank in it, which parts the "
                    "columns of judgments: rename it"
                )
    rows = collection.judgments
    return "".join(f"{query} 0 {document} {grade}\n" for query, document, grade in rows)


def _encode_queries(collection: ImportedCollection) -> bytes:
    return encode_json_lines(
        {"id": query, "text": text, **({"split": split} if split else {})}
        for query, text, split in collection.queries
    )


def _dataset_text(collection: ImportedCollection, name: str) -> str:
    data: dict[str, Any] = {
        "name": name,
        "description": f"Added from {collection.origin}.",
        "license": collection.license,
        "qrels": QRELS_FILE,
        "queries": QUERIES_FILE,
        "documents": DOCUMENTS_FILE,
    }
    return f"# Written by: fusion-bench dataset add\n{format_yaml(data)}"
