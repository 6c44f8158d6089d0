"""A published test collection, written as a dataset's folder."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

from fusion_bench.errors import DataError
from fusion_bench.util.formatting import Columns, TableView, pluralize

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


DATASET_FILE, QRELS_FILE = "dataset.yaml", "qrels.txt"
QUERIES_FILE, DOCUMENTS_FILE = "queries.jsonl", "documents.jsonl"
FILES = (DATASET_FILE, QRELS_FILE, QUERIES_FILE, DOCUMENTS_FILE)


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
