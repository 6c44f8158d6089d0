"""The relevant documents of the evaluated queries, and where aligned runs have them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.ordering import IntArray
from fusion_bench.data.qrels import Qrels
from fusion_bench.data.rows.grouped_rows import query_of_rows
from fusion_bench.data.rows.ids import unite_vocabularies

T = TypeVar("T", bound=np.generic)


@dataclass(frozen=True, eq=False)
class RelevantDocuments:
    """The M relevant documents of the evaluated queries, returned or not, grouped by query.

    Attributes:
        query: Shape (M,): index of the query.
        documents: Ids, (M,).
        grades: Shape (M,).
        rows: Shape (M,): the candidate of the aligned runs; -1 = no list returned it.
    """

    query: IntArray
    documents: tuple[str, ...]
    grades: IntArray
    rows: IntArray


def list_relevant(runs: AlignedRuns, qrels: Qrels, binary_relevance: int) -> RelevantDocuments:
    """The relevant documents of the queries of ``runs``.

    Args:
        runs: Aligned runs.
        qrels: The judgments that they were aligned with.
        binary_relevance: The grade from which a document is relevant.
    """
    index = {query: q for q, query in enumerate(runs.queries)}
    numbers = np.array([index.get(query, -1) for query in qrels.queries], dtype=np.int64)
    query = numbers[query_of_rows(qrels.offsets)]
    kept = np.flatnonzero((qrels.grades >= binary_relevance) & (query >= 0))
    kept = kept[np.argsort(query[kept], kind="stable")]
    vocabulary, (of_runs, of_qrels) = unite_vocabularies([runs.vocabulary, qrels.vocabulary])
    size = len(vocabulary)
    keys = query[kept] * size + of_qrels[qrels.documents[kept]]
    rows = np.flatnonzero(runs.judged & (runs.grades >= binary_relevance))
    at = find_keys(runs.query_index[rows] * size + of_runs[runs.documents[rows]], keys)
    return RelevantDocuments(
        query=query[kept],
        documents=qrels.vocabulary.decode(qrels.documents[kept]),
        grades=qrels.grades[kept],
        rows=np.where(at >= 0, rows[at] if len(rows) else -1, -1),
    )


def find_keys(known: IntArray, keys: IntArray) -> IntArray:
    """Where each key stands among the distinct known ones; -1 = nowhere."""
    if not len(known):
        return np.full(len(keys), -1)
    order = np.argsort(known)
    at = np.minimum(np.searchsorted(known, keys, sorter=order), len(known) - 1)
    rows = order[at]
    return np.where(known[rows] == keys, rows, -1)


def take_relevant(values: NDArray[T], relevant: RelevantDocuments) -> NDArray[T]:
    """(M,): the values of the relevant documents among (N,); 0 or False where no list has it."""
    taken = np.zeros(len(relevant.rows), dtype=values.dtype)
    is_known = relevant.rows >= 0
    taken[is_known] = values[relevant.rows[is_known]]
    return taken
