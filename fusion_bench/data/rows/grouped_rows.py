"""Rows grouped by query and encoded: what every table of this package is made of."""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Sized
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from fusion_bench.data.ordering import FloatArray, IntArray, make_readonly
from fusion_bench.data.rows.ids import CategoricalIds, IdVocabulary, encode_ids
from fusion_bench.errors import DataError
from fusion_bench.util.digests import hash_values

T = TypeVar("T", bound=np.generic)


class GroupedRows(NamedTuple):
    """Rows grouped by query."""

    queries: tuple[str, ...]
    offsets: IntArray
    vocabulary: IdVocabulary
    documents: IntArray
    rows: IntArray | None  # original row of each grouped row; None = they came grouped

    def take_column(self, column: NDArray[T]) -> NDArray[T]:
        """A column of the original rows, grouped."""
        return column if self.rows is None else column[self.rows]

    def original_row(self, at: int) -> int:
        """The original row of a grouped one."""
        return at if self.rows is None else int(self.rows[at])


def group_rows(
    queries: Sequence[str] | CategoricalIds,
    documents: Sequence[str] | CategoricalIds,
    kind: str,
    *,
    sort_queries: bool = False,
) -> GroupedRows:
    """Group rows by query, keeping file order inside a query, and encode the document ids.

    Args:
        queries: Shape (N,).
        documents: Shape (N,).
        kind: What a row is, for an error.
        sort_queries: Queries in the order of their ids, by bytes, in place of the file's.

    Raises:
        DataError: There is no row, or an id is empty or holds the character NUL.
    """
    if len(queries) == 0:
        raise DataError(f"no {kind} in it: at least one row is needed")
    query, document = encode_ids(queries), encode_ids(documents)
    for what, column in (("query", query), ("document", document)):
        if column.vocabulary[0] == "":  # it is sorted
            raise DataError(f"empty {what} id", row=int(np.argmin(column.codes)))
        if not column.vocabulary.data.all():  # some id, perhaps of another file, holds NUL
            holds = np.array(["\0" in name for name in column.vocabulary])[column.codes]
            if holds.any():
                raise DataError(f"a {what} id holds NUL (\\0)", row=int(np.argmax(holds)))
    if sort_queries:
        codes, names = query.codes, tuple(query.vocabulary)
    else:
        codes, names = _number_by_appearance(query)
    offsets = to_offsets(np.bincount(codes, minlength=len(names)))
    if (codes[1:] >= codes[:-1]).all():
        return GroupedRows(names, offsets, document.vocabulary, document.codes, None)
    rows = np.argsort(codes, kind="stable")
    return GroupedRows(names, offsets, document.vocabulary, document.codes[rows], rows)


def _number_by_appearance(column: CategoricalIds) -> tuple[IntArray, tuple[str, ...]]:
    """Codes in order of first appearance, and what they stand for."""
    is_head = np.ones(len(column), dtype=bool)  # most rows have the query of the row before
    np.not_equal(column.codes[1:], column.codes[:-1], out=is_head[1:])
    heads = column.codes[is_head]
    known, first = np.unique(heads, return_index=True)
    by_appearance = np.argsort(first)
    number = np.empty(len(column.vocabulary), dtype=np.int64)
    number[known[by_appearance]] = np.arange(len(known))
    names = tuple(column.vocabulary)
    return number[column.codes], tuple(names[code] for code in known[by_appearance].tolist())


def refuse_ragged(**columns: Sized | None) -> None:
    """Raise where parallel columns are not equally long; None = no such column."""
    sizes = {name: len(column) for name, column in columns.items() if column is not None}
    if len(set(sizes.values())) > 1:
        given = ", ".join(f"{size} {name}" for name, size in sizes.items())
        raise DataError(f"the columns must be equally long, given {given}")


def number_by_appearance(values: Sequence[str]) -> tuple[IntArray, tuple[str, ...]]:
    """Codes in order of first appearance, and what they stand for."""
    table: dict[str, int] = {}
    listed = [table.setdefault(value, len(table)) for value in values]
    return np.array(listed, dtype=np.int64), tuple(table)


def find_repeats(grouped: GroupedRows, order: IntArray | slice) -> NDArray[np.bool_]:
    """Which rows, taken in ``order``, name a document that stood earlier in the same query."""
    pairs = _number_pairs(grouped)[order]
    is_repeat = np.ones(len(pairs), dtype=bool)
    is_repeat[np.unique(pairs, return_index=True)[1]] = False
    return is_repeat


def _number_pairs(grouped: GroupedRows) -> IntArray:
    """A number for each pair of query and document."""
    return query_of_rows(grouped.offsets) * len(grouped.vocabulary) + grouped.documents


def refuse_duplicates(grouped: GroupedRows, advice: str = "keep one row") -> None:
    """Raise for the first row that repeats a (query, document) pair, and say what to do."""
    pairs = np.sort(_number_pairs(grouped))
    if (pairs[1:] != pairs[:-1]).all():
        return
    at = int(np.argmax(find_repeats(grouped, slice(None))))
    query = int(np.searchsorted(grouped.offsets, at, side="right")) - 1
    raise DataError(
        f"document {grouped.vocabulary[grouped.documents[at]]!r} stands twice for query "
        f"{grouped.queries[query]!r}: {advice}",
        row=grouped.original_row(at),
    )


def to_offsets(counts: IntArray) -> IntArray:
    """Offsets of shape (Q+1,) from row counts of shape (Q,)."""
    return np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)


def query_of_rows(offsets: IntArray) -> IntArray:
    """Index of the query that owns each row, shape (N,)."""
    return np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))


def rows_of(offsets: IntArray, queries: IntArray) -> IntArray:
    """The rows of these queries, one query after another."""
    counts = np.diff(offsets)[queries]
    before = np.cumsum(counts) - counts
    rows: IntArray = np.repeat(offsets[queries] - before, counts) + np.arange(int(counts.sum()))
    return rows


def count_within_queries(offsets: IntArray) -> IntArray:
    """1, 2, 3 … inside each query, shape (N,)."""
    return np.arange(1, int(offsets[-1]) + 1) - np.repeat(offsets[:-1], np.diff(offsets))


def query_slices(queries: tuple[str, ...], offsets: IntArray) -> Iterator[tuple[str, slice]]:
    """Each query with the slice of its rows."""
    for q, query in enumerate(queries):
        yield query, slice(int(offsets[q]), int(offsets[q + 1]))


def hash_table(
    queries: tuple[str, ...], offsets: IntArray, *parts: NDArray[Any] | IdVocabulary
) -> str:
    """SHA-256 over a table, the same for every order of its queries.

    Args:
        queries: Query ids.
        offsets: Shape (Q+1,).
        parts: Arrays of shape (N,), permuted along with the queries, or a vocabulary.
    """
    order = np.array(sorted(range(len(queries)), key=queries.__getitem__), dtype=np.int64)
    rows = rows_of(offsets, order)
    values: list[Any] = [[queries[q] for q in order], np.diff(offsets)[order]]
    for part in parts:
        values += part.encode_texts() if isinstance(part, IdVocabulary) else [part[rows]]
    return hash_values(*values)


def cut_sources(
    ranks: IntArray, scores: FloatArray, rows: Sequence[int], cuts: Sequence[int | None]
) -> tuple[IntArray, IntArray, FloatArray]:
    """The candidates that some sources return up to their cuts: (n,), ranks and scores (s, n).

    Args:
        ranks: Shape (S, N), 1-based; 0 = not retrieved.
        scores: Shape (S, N); NaN = not retrieved.
        rows: The s sources.
        cuts: The greatest rank of each to keep; None = all, (s,).
    """
    is_kept = np.zeros(ranks.shape[1], dtype=bool)
    for row, cut in zip(rows, cuts, strict=True):
        is_kept |= ranks[row] > 0 if cut is None else (ranks[row] > 0) & (ranks[row] <= cut)
    kept = np.flatnonzero(is_kept)
    kept_ranks, kept_scores = _take(ranks, rows, kept), _take(scores, rows, kept)
    for row_ranks, row_scores, cut in zip(kept_ranks, kept_scores, cuts, strict=True):
        if cut is not None:
            is_beyond = row_ranks > cut
            row_ranks[is_beyond], row_scores[is_beyond] = 0, np.nan
    return kept, kept_ranks, kept_scores


def _take(table: NDArray[T], rows: Sequence[int], columns: IntArray) -> NDArray[T]:
    taken = np.empty((len(rows), len(columns)), dtype=table.dtype)
    for row, values in zip(rows, taken, strict=True):
        np.take(table[row], columns, out=values, mode="clip")  # "raise" would copy twice
    return taken


def count_retrieved(ranks: IntArray, query: IntArray, queries: int) -> IntArray:
    """(S, Q): how many documents each source returned for each query, read-only.

    Args:
        ranks: Shape (S, N), 1-based; 0 = not retrieved by that source.
        query: The query that owns each candidate, shape (N,).
        queries: Q.
    """
    counts = [np.bincount(query[row > 0], minlength=queries) for row in ranks]
    lengths = np.array(counts, dtype=np.int64).reshape(len(ranks), queries)
    make_readonly(lengths)
    return lengths
