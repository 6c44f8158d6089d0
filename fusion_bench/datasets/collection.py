"""A published test collection, as its folder or library gives it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from fusion_bench.errors import DataError
from fusion_bench.util.formatting import pluralize

#: What is counted, in the order in which it is shown.
COUNTED = ("queries", "judgments", "documents")


class Judgment(NamedTuple):
    """The grade of one document for one query."""

    query: str
    document: str
    grade: int


class CollectionDocument(NamedTuple):
    """A document; the title is empty where it has none."""

    id: str
    title: str
    text: str


class CollectionQuery(NamedTuple):
    """A judged query; the split is empty where the collection has one part only."""

    id: str
    text: str
    split: str


@dataclass(frozen=True)
class Collection:
    """A test collection, read as far as its queries and judgments.

    Attributes:
        name: A name for the dataset.
        origin: Where it comes from, for the description.
        queries: The judged queries.
        judgments: Their judgments.
        read_documents: Reads the documents, one after the other.
        license: Its terms; empty where nothing states them.
        counts: What was read: ``queries`` (judged or not) and ``judgments``.
        stated: What its makers say of these and of ``documents``.
        notes: What a user should know.
    """

    name: str
    origin: str
    queries: Sequence[CollectionQuery]
    judgments: Sequence[Judgment]
    read_documents: Callable[[], Iterator[CollectionDocument]]
    license: str = ""
    counts: Mapping[str, int] = field(default_factory=dict)
    stated: Mapping[str, int] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


def join_splits(
    where: str, texts: Mapping[str, str], splits: Mapping[str, Sequence[Judgment]]
) -> tuple[list[CollectionQuery], list[Judgment]]:
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
        for query in dict.fromkeys(judgment.query for judgment in judgments):
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
        CollectionQuery(query, texts[query], "" if is_whole else split)
        for query, split in split_of.items()
    ]
    return queries, [judgment for each in splits.values() for judgment in each]


def choose_splits(where: str, known: Sequence[str], wanted: Sequence[str]) -> list[str]:
    """The splits that are added: the wanted ones, or all.

    Raises:
        DataError: There is none, or a wanted one is not known.
    """
    if not known:
        raise DataError(f"{where}: no judgments: a collection has at least one split with some")
    unknown = [name for name in wanted if name not in known]
    if unknown:
        raise DataError(f"{where}: no split {unknown[0]!r} (known: {', '.join(known)})")
    return [name for name in known if not wanted or name in wanted]


def list_differing(collection: Collection, counts: Mapping[str, int]) -> dict[str, tuple[int, int]]:
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


def check_counts(collection: Collection, counts: Mapping[str, int]) -> None:
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
