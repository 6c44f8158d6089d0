"""How the rows of a file become ranks, before any fusion."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from fusion_bench.data.ordering import FloatArray, IntArray, already_sorted, positions
from fusion_bench.data.rows.grouped_rows import (
    GroupedRows,
    count_within_queries,
    query_of_rows,
    rows_of,
    to_offsets,
)
from fusion_bench.data.rows.values import parse_whole_numbers
from fusion_bench.errors import DataError


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """How a run's rows become ranks: the options that can change a ranking before any fusion.

    Attributes:
        rank_from: ``score`` = position after sorting by score; ``column`` = the file's own ranks.
        source_ties: Who stands first among equal scores: ``trec`` = greater document id by bytes,
            ``file`` = the earlier row.
        on_duplicate: A document listed twice for a query is an error, or keeps its best rank.
        drop_zero_scores: Drop rows whose score is exactly 0 (padding of BM25 implementations).
    """

    rank_from: Literal["score", "column"] = "score"
    source_ties: Literal["trec", "file"] = "trec"
    on_duplicate: Literal["error", "best_rank"] = "error"
    drop_zero_scores: bool = False


def assign_ranks(
    grouped: GroupedRows,
    scores: FloatArray,
    ranks: Sequence[int] | IntArray | None,
    read_options: ReadOptions,
) -> IntArray | None:
    """The place of every grouped row inside its query, by score or by the file's rank column.

    None = 1, 2, 3 … as they stand.
    """
    if read_options.rank_from == "column":
        return _column_ranks(grouped, ranks)
    # Greater document id first; the row breaks the tie of a duplicate, which comes later.
    ties = None if read_options.source_ties == "file" else ~grouped.documents
    loose = np.flatnonzero(~already_sorted(scores, grouped.offsets, tie_order=ties))
    if len(loose) == 0:  # most files are written best first, and only some queries need sorting
        return None
    places = count_within_queries(grouped.offsets)
    rows = rows_of(grouped.offsets, loose)
    lengths = to_offsets(np.diff(grouped.offsets)[loose])
    places[rows] = positions(scores[rows], lengths, tie_order=None if ties is None else ties[rows])
    return places


def order_by_rank(
    place: IntArray | None, offsets: IntArray, read_options: ReadOptions
) -> IntArray | slice:
    """The rows of each query in the order of their places; all as they stand where they do."""
    if place is None:
        return slice(None)
    if read_options.rank_from == "column":
        return order_by_value(place, offsets)
    here = count_within_queries(offsets)
    moved = np.flatnonzero(place != here)  # mostly few
    order = np.arange(len(place))
    order[moved + (place[moved] - here[moved])] = moved
    return order


def order_by_value(values: IntArray, offsets: IntArray) -> IntArray:
    """The rows of each query by their values, a stable sort."""
    rises = np.ones(len(values) + 1, dtype=bool)
    np.less_equal(values[:-1], values[1:], out=rises[1:-1])
    rises[offsets] = True  # a query's first row has nothing above it
    return np.arange(len(values)) if rises.all() else np.lexsort((values, query_of_rows(offsets)))


def _column_ranks(grouped: GroupedRows, ranks: Sequence[int] | IntArray | None) -> IntArray:
    """Ranks from the file, shifted to start at 1, refused when negative or repeated."""
    if ranks is None:
        raise DataError("rank_from: column was asked for, but there is no rank column")
    column = grouped.take_column(parse_whole_numbers(ranks, "rank"))
    if (column < 0).any():
        first = int(np.flatnonzero(column < 0)[0])
        raise DataError(
            f"rank {column[first]} is negative; ranks start at 0 or 1",
            row=grouped.original_row(first),
        )
    column = column + int(column.min() == 0)
    query = query_of_rows(grouped.offsets)
    order = np.lexsort((column, query))
    same = (np.diff(query[order]) == 0) & (np.diff(column[order]) == 0)
    if same.any():
        again = order[np.flatnonzero(same)[0] + 1]
        raise DataError(
            f"rank {column[again]} is given twice for query {grouped.queries[query[again]]!r}",
            row=grouped.original_row(int(again)),
        )
    return column
