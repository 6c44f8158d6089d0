"""Lists and judgments of queries, compared: which are equal, and how far two lists overlap."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from typing import Final

import numpy as np

from fusion_bench.data.ordering import FloatArray, IntArray
from fusion_bench.data.qrels import Qrels
from fusion_bench.data.rows.grouped_rows import query_slices
from fusion_bench.data.run import Run

#: Ranks down to which lists are compared for overlap.
TOP: Final = 10
#: Ranks down to which lists must be equal to be called so.
EQUAL_TOP: Final = 100
#: Equal lists are a sign only where one of them has so many documents.
MIN_LENGTH: Final = 5


def hash_lists(queries: Sequence[str], runs: Iterable[Run]) -> list[Hashable | None]:
    """(Q,): what is equal where all lists are; None = no list of at least five documents."""
    parts: dict[str, list[bytes]] = {query: [] for query in queries}
    longest = dict.fromkeys(queries, 0)
    for run in runs:
        missing = set(queries)
        for query, rows in query_slices(run.queries, run.offsets):
            if query in parts:
                documents = run.documents[rows][:EQUAL_TOP]
                parts[query].append(documents.tobytes())
                longest[query] = max(longest[query], len(documents))
                missing.discard(query)
        for query in missing:
            parts[query].append(b"")
    return [tuple(parts[q]) if longest[q] >= MIN_LENGTH else None for q in queries]


def hash_relevant(queries: Sequence[str], qrels: Qrels) -> list[Hashable | None]:
    """(Q,): what is equal where the relevant documents and their grades are; None = there is none.

    Documents that are judged not relevant do not count.
    """
    known: dict[str, Hashable] = {}
    for query, rows in query_slices(qrels.queries, qrels.offsets):
        documents, grades = qrels.documents[rows], qrels.grades[rows]
        relevant = np.flatnonzero(grades > 0)
        relevant = relevant[np.argsort(documents[relevant], kind="stable")]
        if len(relevant):
            known[query] = (documents[relevant].tobytes(), grades[relevant].tobytes())
    return [known.get(query) for query in queries]


def match_keys(keys: Sequence[Hashable | None]) -> Iterator[tuple[int, int]]:
    """Each index with the first that has the same key; None equals nothing."""
    first: dict[Hashable, int] = {}
    for i, key in enumerate(keys):
        if key is not None and (earlier := first.setdefault(key, i)) != i:
            yield earlier, i


def measure_overlap(queries: Sequence[str], runs: Iterable[Run], pairs: IntArray) -> FloatArray:
    """(P,): the share of the first ten documents that two queries have in common.

    The share of the shorter list, averaged over the runs that answer both; 0 where none does.

    Args:
        queries: Query ids, (Q,).
        runs: Runs; a rerank list holds its first stage's documents and is no evidence.
        pairs: Shape (P, 2): indices of queries.
    """
    total, count = np.zeros(len(pairs)), np.zeros(len(pairs))
    index = {query: i for i, query in enumerate(queries)}
    for run in runs:
        top = np.full((len(queries), TOP), -1, dtype=np.int64)
        for query, rows in query_slices(run.queries, run.offsets):
            if query in index:
                documents = run.documents[rows][:TOP]
                top[index[query], : len(documents)] = documents
        first, second = top[pairs[:, 0]], top[pairs[:, 1]]
        sizes = np.minimum((first >= 0).sum(axis=1), (second >= 0).sum(axis=1))
        shared = np.zeros(len(pairs))
        for column in range(TOP):
            document = first[:, column, None]
            shared += ((document == second) & (document >= 0)).any(axis=1)
        total += np.divide(shared, sizes, out=np.zeros(len(pairs)), where=sizes > 0)
        count += sizes > 0
    return np.divide(total, count, out=np.zeros(len(pairs)), where=count > 0)
