"""A test collection → a dataset's folder, which ``retrieve`` and ``pull`` give their lists to."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fusion_bench.datasets.collection import (
    Collection,
    CollectionDocument,
    check_counts,
    list_differing,
)
from fusion_bench.errors import DataError
from fusion_bench.io.specs.dataset_name import make_dataset_name
from fusion_bench.util.files.atomic_files import make_write_error, open_atomic, write_atomic
from fusion_bench.util.files.new_files import remove_on_failure, require_free
from fusion_bench.util.formatting import pluralize
from fusion_bench.util.json_lines import encode_json_lines
from fusion_bench.util.table_view import Columns, TableView
from fusion_bench.util.yaml_text import format_yaml

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
    collection: Collection,
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
    check_free(folder)
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


def check_free(folder: Path) -> None:
    """Refuse a folder in which something would be overwritten, before the work begins.

    Raises:
        ConfigError: It is a file, or holds a file of a dataset.
    """
    require_free(folder, FILES)


def _write_documents(
    path: Path, collection: Collection, progress: Callable[[str, int, int], None]
) -> set[str]:
    """Write the documents as they are read; returns their ids."""
    ids: set[str] = set()
    expected = collection.stated.get("documents", 0)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with open_atomic(path) as file:
            for document in collection.read_documents():
                if document.id in ids:
                    raise DataError(
                        f"{collection.origin}: document {document.id!r} stands twice: keep one"
                    )
                ids.add(document.id)
                file.write(encode_json_lines([_describe_document(document)]))
                if len(ids) % DOCUMENTS_A_STEP == 0:
                    progress("writing the documents", len(ids), max(expected, len(ids)))
    except OSError as error:
        raise make_write_error(path, error) from error
    if not ids:
        raise DataError(f"{collection.origin}: no documents: at least one is needed")
    return ids


def _describe_document(document: CollectionDocument) -> dict[str, str]:
    title = {"title": document.title} if document.title else {}
    return {"id": document.id, **title, "text": document.text}


def _list_notes(collection: Collection, counts: Mapping[str, int], ids: set[str]) -> Iterator[str]:
    if not collection.license and not collection.notes:
        yield "no license is stated: find the collection's terms before you share anything of it"
    absent = {judgment.document for judgment in collection.judgments} - ids
    if absent:
        yield (
            f"{pluralize(len(absent), 'judged document')} not in the collection (for example "
            f"{min(absent)!r}): no system can return them"
        )
    for what, (count, stated) in list_differing(collection, counts).items():
        yield f"{count:,} {what} were read, and {stated:,} are stated"


def _qrels_text(collection: Collection) -> str:
    rows = collection.judgments
    for judgment in rows:
        for each in (judgment.query, judgment.document):
            if each != "".join(each.split()):
                raise DataError(
                    f"{collection.origin}: the id {each!r} has a blank in it, which parts the "
                    "columns of judgments: rename it"
                )
    return "".join(f"{row.query} 0 {row.document} {row.grade}\n" for row in rows)


def _encode_queries(collection: Collection) -> bytes:
    return encode_json_lines(
        {"id": query.id, "text": query.text, **({"split": query.split} if query.split else {})}
        for query in collection.queries
    )


def _dataset_text(collection: Collection, name: str) -> str:
    data: dict[str, Any] = {
        "name": name,
        "description": f"Added from {collection.origin}.",
        "license": collection.license,
        "qrels": QRELS_FILE,
        "queries": QUERIES_FILE,
        "documents": DOCUMENTS_FILE,
    }
    return f"# Written by: fusion-bench dataset add\n{format_yaml(data)}"
