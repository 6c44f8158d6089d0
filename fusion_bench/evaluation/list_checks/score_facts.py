"""What a list's scores alone say: constant lists, what 32-bit floats change, the lowest score."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from fusion_bench.data.ordering import BoolArray
from fusion_bench.data.rows.grouped_rows import query_of_rows
from fusion_bench.data.run import Run


def count_constant_lists(run: Run, queries: Collection[str]) -> int:
    """How many of these queries have a list of two documents or more that all score the same."""
    is_same = _pairs_within(run) & (run.scores[1:] == run.scores[:-1])
    sizes = np.diff(run.offsets)
    pairs = np.bincount(query_of_rows(run.offsets)[1:][is_same], minlength=len(sizes))
    return _count_queries(run, (sizes > 1) & (pairs == sizes - 1), queries)


def count_changed_by_float32(run: Run, queries: Collection[str]) -> int:
    """How many of these queries trec_eval orders otherwise, because it reads 32-bit floats.

    Scores that differ as 64-bit floats are equal there, and then the greater document id stands
    first. Lists that a rank column orders count 0: trec_eval never reads that column.
    """
    if run.read_options.rank_from == "column":
        return 0
    with np.errstate(over="ignore"):
        short = run.scores.astype(np.float32)
    is_merged = (short[1:] == short[:-1]) & (run.scores[1:] != run.scores[:-1])
    is_moved = _pairs_within(run) & is_merged & (run.documents[:-1] < run.documents[1:])
    changed = np.zeros(len(run.queries), dtype=bool)
    changed[query_of_rows(run.offsets)[1:][is_moved]] = True
    return _count_queries(run, changed, queries)


def lowest_score(run: Run) -> float | None:
    """The lowest score of any document; None of an empty list."""
    return float(run.scores.min()) if len(run.scores) else None


def _pairs_within(run: Run) -> BoolArray:
    """(N - 1,): whether a row and the next belong to one query."""
    query = query_of_rows(run.offsets)
    return np.asarray(query[1:] == query[:-1])


def _count_queries(run: Run, marked: BoolArray, queries: Collection[str]) -> int:
    return sum(run.queries[q] in queries for q in np.flatnonzero(marked).tolist())
