"""Which documents are the candidates of a query, and where each table's rows stand among them.

A candidate is an integer, its key: the query above, the document's common code below, from the
greatest id down, so that sorted keys stand in the order of the ``trec`` rule.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from fusion_bench.data.grouped_rows import query_of_rows, rows_of, to_offsets
from fusion_bench.data.ids import IdVocabulary, unite_vocabularies
from fusion_bench.data.ordering import FloatArray, IntArray
from fusion_bench.data.records import Qrels, Run

#: Where rows stand among the candidates, and which rows these are.
Placement: TypeAlias = tuple[IntArray | NDArray[np.int32], IntArray | slice]
#: Rows that are sorted together.
BLOCK = 1 << 15


def codes_in(vocabulary: IdVocabulary, names: IdVocabulary) -> IntArray:
    """The code of each name; -1 for one that is not in the vocabulary."""
    together, (known, wanted) = unite_vocabularies([vocabulary, names])
    lookup = np.full(len(together), -1)
    lookup[known] = np.arange(len(vocabulary))
    return lookup[wanted]


def place_candidates(
    queries: tuple[str, ...], runs: Sequence[Run], codes: Sequence[IntArray], bits: int
) -> tuple[IntArray, IntArray, list[Placement]]:
    """The candidates as sorted keys, their offsets, and of each run which rows stand where."""
    sources = [
        _sort_keys(run, known, queries, bits) for run, known in zip(runs, codes, strict=True)
    ]
    candidates, places = _unite_keys([keys for keys, _ in sources], bits, len(queries))
    offsets = to_offsets(np.bincount(candidates >> bits, minlength=len(queries)))
    placements: list[Placement] = [
        (at, rows) for at, (_, rows) in zip(places, sources, strict=True)
    ]
    return candidates, offsets, placements


def _sort_keys(
    table: Run | Qrels, codes: IntArray, queries: tuple[str, ...], bits: int
) -> tuple[IntArray, IntArray | slice]:
    """The rows of judged queries and known documents, by query.

    Args:
        table: With rows.
        codes: Shape (vocabulary of the table,): the common code of its documents; -1 = not known.
        queries: The judged queries.
        bits: What a common code fits into.

    Returns:
        For each such row an integer that sorts by query, then by document id from above, and the
        row in the table.
    """
    index = {query: q for q, query in enumerate(queries)}
    query = np.array([index.get(q, -1) for q in table.queries], dtype=np.int64)
    known = np.flatnonzero(query >= 0)
    known = known[np.argsort(query[known], kind="stable")]
    rows: IntArray | slice = slice(None)  # mostly all of them, as they stand
    if len(known) < len(query) or (np.diff(known) < 0).any():
        rows = rows_of(table.offsets, known)
    owner = np.repeat((query[known] + 1) << bits, np.diff(table.offsets)[known])
    documents = codes[table.documents[rows]]
    # A negative number has all its upper bits set: ~code is a query's worth minus the code.
    keys = owner + ~documents
    if codes.min(initial=0) < 0 and not (there := documents >= 0).all():
        return keys[there], np.arange(len(table.documents))[rows][there]
    return keys, rows


def _unite_keys(
    keys: Sequence[IntArray], bits: int, queries: int
) -> tuple[IntArray, list[IntArray]]:
    """The distinct keys, sorted, and the place of each table's keys among them.

    Works on some queries at a time: what is sorted together stays in the processor's cache, and
    the row fits into the low bits of the key that is sorted.
    """
    rows = sum(map(len, keys))
    step = max(queries * BLOCK // max(rows, 1), 1)
    limits = np.append(np.arange(0, queries, step), queries) << bits
    cuts = np.array([np.searchsorted(key, limits) for key in keys])
    places = [np.empty(len(key), dtype=np.int64) for key in keys]
    blocks: list[IntArray] = []
    before = 0
    for start, stop, low in zip(cuts.T[:-1], cuts.T[1:], limits[:-1], strict=True):
        parts = [slice(*ends) for ends in zip(start.tolist(), stop.tolist(), strict=True)]
        block = np.concatenate([key[part] for key, part in zip(keys, parts, strict=True)])
        distinct, codes = _number_keys(block - low, bits + step.bit_length())
        blocks.append(distinct + low)
        codes += before
        for place, part, numbers in zip(
            places, parts, np.split(codes, np.cumsum(stop - start)[:-1]), strict=True
        ):
            place[part] = numbers
        before += len(distinct)
    return np.concatenate(blocks), places


def _number_keys(keys: IntArray, bits: int) -> tuple[IntArray, IntArray]:
    """The distinct keys, sorted, and the number of each key among them.

    Args:
        keys: Shape (n,), not negative.
        bits: What a key fits into.
    """
    row_bits = max(len(keys) - 1, 0).bit_length()
    if bits + row_bits > 63:
        distinct, codes = np.unique(keys, return_inverse=True)
        return distinct, codes
    packed = keys << row_bits
    packed |= np.arange(len(keys))
    packed.sort()  # plain integers: several times as fast as sorting indices
    rows = packed & ((1 << row_bits) - 1)
    packed >>= row_bits
    is_first = np.ones(len(keys), dtype=bool)
    np.not_equal(packed[1:], packed[:-1], out=is_first[1:])
    numbers = np.cumsum(is_first)
    numbers -= 1
    codes = np.empty_like(numbers)
    codes[rows] = numbers
    return packed[is_first], codes


def scatter_runs(
    size: int, runs: Sequence[Run], placements: Sequence[Placement]
) -> tuple[IntArray, FloatArray]:
    """(S, N) ranks and scores of each run at the candidates; 0 and NaN where it has none."""
    ranks = np.zeros((len(runs), size), dtype=np.int64)
    scores = np.full((len(runs), size), np.nan)
    for s, (run, (at, rows)) in enumerate(zip(runs, placements, strict=True)):
        ranks[s, at], scores[s, at] = run.ranks[rows], run.scores[rows]
    return ranks, scores


def find_candidates(
    candidates: IntArray, table: Run | Qrels, codes: IntArray, queries: tuple[str, ...], bits: int
) -> Placement:
    """Where the rows of a table stand among the candidates, without those that are none.

    Args:
        candidates: Sorted keys.
        table: As for :func:`_sort_keys`, likewise the rest.
        codes: The common code of its documents.
        queries: The judged queries.
        bits: What a common code fits into.
    """
    if len(candidates) == 0:
        return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
    keys, rows = _sort_keys(table, codes, queries, bits)
    at = np.minimum(np.searchsorted(candidates, keys), len(candidates) - 1)
    known = np.flatnonzero(candidates[at] == keys)
    return at[known], known if isinstance(rows, slice) else rows[known]


def scatter_grades(
    size: int, qrels: Qrels, placement: Placement
) -> tuple[NDArray[np.bool_], IntArray]:
    """(N,) whether each candidate is judged, and its grade (0 where it is not)."""
    at, rows = placement
    judged = np.zeros(size, dtype=bool)
    grades = np.zeros(size, dtype=np.int64)
    judged[at], grades[at] = True, qrels.grades[rows]
    return judged, grades


def ideal_gains(qrels: Qrels) -> tuple[IntArray, IntArray]:
    """Positive grades of every query, greatest first, with their offsets."""
    query = query_of_rows(qrels.offsets)
    positive = np.flatnonzero(qrels.grades > 0)
    order = positive[np.lexsort((-qrels.grades[positive], query[positive]))]
    counts = np.bincount(query[positive], minlength=len(qrels.queries))
    return to_offsets(counts), qrels.grades[order]
