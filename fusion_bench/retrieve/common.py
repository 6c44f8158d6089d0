"""What the retrievers share: optional imports, and cutting scores to a list."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from fusion_bench.data.ordering import FloatArray
from fusion_bench.errors import DataError
from fusion_bench.util.optional_imports import import_optional

#: Documents with their scores, best first.
Ranking: TypeAlias = list[tuple[str, float]]
#: Called with what is done now, the steps done, and all steps.
Progress: TypeAlias = Callable[[str, int, int], None]

#: Queries that are scored together; no result depends on it.
CHUNK = 128


import_extra = partial(import_optional, extra="retrieve")


class Index(Protocol):
    """Scores every document of a collection for a query.

    Attributes:
        ids: Document ids, shape (D,).
    """

    ids: tuple[str, ...]

    def scores(self, queries: Sequence[str]) -> FloatArray:
        """Shape (Q, D); columns follow ``ids``."""
        ...


def score_chunks(index: Index, queries: Sequence[str]) -> Iterator[FloatArray]:
    """Scores of an index for its queries, some at a time; shape (q, D) each."""
    for start in range(0, len(queries), CHUNK):
        yield index.scores(queries[start : start + CHUNK])


def rank_chunks(
    ids: Sequence[str],
    chunks: Iterable[FloatArray],
    *,
    depth: int,
    above: float | None = None,
    on_progress: Callable[[int], None] = lambda _: None,
) -> list[Ranking]:
    """The best documents of each query; arguments as for :func:`rank_documents`.

    Args:
        ids: Document ids, shape (D,).
        chunks: Scores, shape (q, D) each.
        depth: Most documents per query.
        above: Only documents whose rounded score is greater; None = all.
        on_progress: Called with the number of queries done.
    """
    rankings: list[Ranking] = []
    ties = _rank_ids(ids)
    for chunk in chunks:
        rankings += [_cut(ids, row, ties, depth=depth, above=above) for row in chunk]
        on_progress(len(rankings))
    return rankings


def rank_documents(
    ids: Sequence[str],
    scores: FloatArray,
    *,
    depth: int,
    decimals: int = 6,
    above: float | None = None,
) -> Ranking:
    """The best documents of one query.

    Scores are rounded before they are ranked, so that a list written with that many decimals is
    in the order of its own scores. Equal scores stand in trec_eval's order: greater id first.

    Args:
        ids: Document ids, shape (D,).
        scores: Shape (D,): finite.
        depth: At most so many documents are returned.
        decimals: Decimal places that are kept.
        above: Only documents whose rounded score is greater are returned; None = all. BM25 and
            PageRank give 0 to what they did not find, which is not a result.

    Raises:
        DataError: Ids and scores differ in number, or a score is not finite.
    """
    if len(ids) != len(scores):
        raise DataError(f"{len(ids)} document ids for {len(scores)} scores: one each is needed")
    return _cut(ids, scores, _rank_ids(ids), depth=depth, decimals=decimals, above=above)


def _rank_ids(ids: Sequence[str]) -> FloatArray:
    """Place of each id among equal scores: greater ids first, compared as bytes; shape (D,)."""
    by_id = sorted(range(len(ids)), key=lambda d: ids[d].encode(), reverse=True)
    order = np.empty(len(ids))
    order[by_id] = np.arange(len(ids))
    return order


def _cut(
    ids: Sequence[str],
    scores: FloatArray,
    ties: FloatArray,
    *,
    depth: int,
    decimals: int = 6,
    above: float | None = None,
) -> Ranking:
    kept = np.asarray(np.round(scores, decimals), dtype=np.float64)
    if not np.isfinite(kept).all():
        raise DataError(f"score {kept[~np.isfinite(kept)][0]} is not a finite number")
    best = _rank_rows(kept, ties, depth=depth, above=above)
    # Adding 0.0 turns a rounded -0.0 into 0.0, which would otherwise be written with its sign.
    return [(ids[d], float(kept[d] + 0.0)) for d in best]


def rank_by_score(
    scores: FloatArray, *, depth: int, above: float | None = None
) -> NDArray[np.int64]:
    """Rows of the best scores, best first; of equal scores the later one is first.

    Args:
        scores: Shape (D,).
        depth: Most rows.
        above: Only rows whose score is greater; None = all.
    """
    return _rank_rows(scores, -np.arange(len(scores), dtype=np.float64), depth=depth, above=above)


def _rank_rows(
    scores: FloatArray, ties: FloatArray, *, depth: int, above: float | None
) -> NDArray[np.int64]:
    rows = np.arange(len(scores)) if above is None else np.flatnonzero(scores > above)
    if len(rows) > depth:  # sort only what can be in the list
        least = np.partition(scores[rows], len(rows) - depth)[len(rows) - depth]
        rows = rows[scores[rows] >= least]
    return rows[np.lexsort((ties[rows], -scores[rows]))[:depth]]
