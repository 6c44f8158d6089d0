"""Which queries keep their details where those of all would be too large."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np

from fusion_bench.data.ordering import BoolArray, FloatArray, IntArray
from fusion_bench.evaluation.details.relevant_ranks import RelevantRanks
from fusion_bench.evaluation.details.top_documents import TopDocuments

#: Bytes of JSON that the details of all queries may have.
MAX_BYTES: Final = 20_000_000
#: Bytes of a rank, a grade or an index, of a score or a term, and of the marks around a text.
RANK, NUMBER, MARKS = 3, 20, 3


class QuerySizes(NamedTuple):
    """The Q queries of one collection.

    Attributes:
        sizes: Shape (Q,): about how many bytes of JSON the details of each have.
        differences: Shape (Q,): how much the systems differ on each; see :func:`choose_queries`.
    """

    sizes: IntArray
    differences: FloatArray


def estimate_sizes(
    relevant: RelevantRanks, tops: Sequence[TopDocuments], excerpt: int = 0
) -> IntArray:
    """(Q,): about how many bytes of JSON the relevant ranks and top documents of each query have.

    Args:
        relevant: The ranks of the relevant documents.
        tops: The top documents of each detailed system.
        excerpt: Bytes of a document's text.
    """
    size = len(relevant.queries)
    columns = len(relevant.sources) + len(relevant.systems) + 2
    sizes = _add_up(relevant.query, relevant.documents, columns * RANK, size)
    for top in tops:
        row = 4 * RANK + (len(top.labels) + 1) * NUMBER
        sizes += _add_up(top.query, top.documents, row, size)
    if excerpt:
        pairs = set(zip(relevant.query.tolist(), relevant.documents, strict=True))
        for top in tops:
            pairs.update(zip(top.query.tolist(), top.documents, strict=True))
        shown = np.fromiter((query for query, _ in pairs), dtype=np.int64, count=len(pairs))
        sizes += np.bincount(shown, minlength=size) * excerpt
    return sizes


def _add_up(query: IntArray, names: Sequence[str], row: int, queries: int) -> IntArray:
    lengths = np.fromiter(map(len, names), dtype=np.int64, count=len(names))
    totals = np.bincount(query, weights=lengths + MARKS + row, minlength=queries)
    return totals.astype(np.int64)


def choose_queries(collections: Sequence[QuerySizes], limit: int = MAX_BYTES) -> list[BoolArray]:
    """For each collection, shape (Q,): the queries that keep their details.

    All of them where they fit into the limit together. Otherwise those with the greatest
    differences, over all collections, until the next one would not fit.

    Args:
        collections: Sizes and differences.
        limit: Bytes.
    """
    sizes = np.concatenate([each.sizes for each in collections])
    keep = np.ones(len(sizes), dtype=bool)
    if sizes.sum() > limit:
        differences = np.concatenate([each.differences for each in collections])
        order = np.argsort(-differences, kind="stable")
        keep[order] = np.cumsum(sizes[order]) <= limit
    bounds = np.cumsum([len(each.sizes) for each in collections])[:-1]
    return np.split(keep, bounds)
