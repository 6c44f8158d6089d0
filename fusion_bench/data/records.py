"""What comes in: judgements, ranked lists, queries. Checked on entry, frozen afterwards.

Both tables are stored by columns: rows are grouped by query, ``offsets[q]:offsets[q+1]`` are the
rows of query q, and ``documents`` holds codes into ``vocabulary``, which is sorted by bytes, so
that a greater code is a greater document id.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Self, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from fusion_bench.data.grouped_rows import (
    GroupedRows,
    count_within_queries,
    find_repeats,
    group_rows,
    hash_table,
    query_of_rows,
    query_slices,
    refuse_duplicates,
    refuse_ragged,
    to_offsets,
)
from fusion_bench.data.ids import CategoricalIds, IdVocabulary
from fusion_bench.data.ordering import FloatArray, IntArray, make_readonly
from fusion_bench.data.read_options import ReadOptions, assign_ranks, order_by_rank, order_by_value
from fusion_bench.errors import DataError

#: What the numbers of a rerank list mean; ``order`` = only which is greater.
ScoreSpace: TypeAlias = Literal["unit", "logit", "log_prob", "unbounded", "order"]


@dataclass(frozen=True, slots=True)
class Query:
    """What is known of one query beside its judgements; every field but the id may be absent."""

    id: str
    text: str | None = None
    type: str | None = None
    intent: str | None = None
    confidence: float | None = None
    group: str | None = None
    split: str | None = None


@dataclass(frozen=True, slots=True)
class Document:
    """One document; only explanations and judging read the text."""

    id: str
    text: str


@dataclass(frozen=True, eq=False)
class Qrels:
    """Judgements: query → document → grade. Grade 0 = judged not relevant, absent = unjudged.

    Attributes:
        queries: The Q judged queries.
        offsets: Shape (Q+1,).
        vocabulary: Distinct document ids, sorted by bytes.
        documents: Shape (J,): codes into ``vocabulary``.
        grades: Shape (J,): integer grades; negative counts as not relevant.
    """

    queries: tuple[str, ...]
    offsets: IntArray
    vocabulary: IdVocabulary
    documents: IntArray
    grades: IntArray
    _digest: str | None = field(default=None, init=False, repr=False)

    def __post_init__(self) -> None:
        for array in (self.offsets, self.documents, self.grades):
            make_readonly(array)

    @classmethod
    def from_rows(
        cls,
        queries: Sequence[str] | CategoricalIds,
        documents: Sequence[str] | CategoricalIds,
        grades: Sequence[int] | IntArray,
    ) -> Self:
        """Build from parallel columns, one judgement a row.

        Raises:
            DataError: Columns of different lengths, no row, an empty id, or a pair judged twice;
                names the row.
        """
        refuse_ragged(queries=queries, documents=documents, grades=grades)
        grouped = group_rows(queries, documents, "judgement")
        refuse_duplicates(grouped)
        values = grouped.take_column(np.asarray(grades, dtype=np.int64))
        by_document = order_by_value(grouped.documents, grouped.offsets)
        return cls(
            grouped.queries,
            grouped.offsets,
            grouped.vocabulary,
            grouped.documents[by_document],
            values[by_document],
        )

    @classmethod
    def from_dict(cls, judgements: Mapping[str, Mapping[str, int]]) -> Self:
        """Build from query → document → grade."""
        rows = [(q, d, g) for q, docs in judgements.items() for d, g in docs.items()]
        queries, documents, grades = zip(*rows, strict=True) if rows else ((), (), ())
        return cls.from_rows(queries, documents, grades)

    def to_dict(self) -> dict[str, dict[str, int]]:
        """Query → document → grade, as other libraries take it."""
        return _nest_values(self, self.grades)

    def digest(self) -> str:
        """SHA-256 over the contents, the same for any file format and row order of queries."""
        if self._digest is None:
            self.remember_digest(
                hash_table(self.queries, self.offsets, self.documents, self.grades, self.vocabulary)
            )
        return cast("str", self._digest)

    def remember_digest(self, known: str) -> None:
        """Take a digest that was computed before for these contents."""
        object.__setattr__(self, "_digest", known)


@dataclass(frozen=True, eq=False)
class Run:
    """One ranked list a query: what a retriever returned, best first.

    Attributes:
        name: The source's name.
        roles: What it was asked with and how it found, such as ``question``, ``semantic``.
        queries: The queries it answered.
        offsets: Shape (Q+1,).
        vocabulary: Distinct document ids, sorted by bytes.
        documents: Shape (N,): codes into ``vocabulary``, in rank order inside each query.
        scores: Shape (N,): finite.
        ranks: Shape (N,): 1-based; 1, 2, 3 … unless read from a column with gaps.
        read_options: The options it was read with.
        duplicates: Rows dropped under ``on_duplicate: best_rank``.
        zero_scores: Rows whose score is exactly 0, whether or not they were dropped.
    """

    name: str
    queries: tuple[str, ...]
    offsets: IntArray
    vocabulary: IdVocabulary
    documents: IntArray
    scores: FloatArray
    ranks: IntArray
    roles: frozenset[str] = frozenset()
    read_options: ReadOptions = field(default_factory=ReadOptions)
    duplicates: int = 0
    zero_scores: int = 0
    _digest: str | None = field(default=None, init=False, repr=False)

    def __post_init__(self) -> None:
        for array in (self.offsets, self.documents, self.scores, self.ranks):
            make_readonly(array)

    @classmethod
    def from_rows(
        cls,
        name: str,
        queries: Sequence[str] | CategoricalIds,
        documents: Sequence[str] | CategoricalIds,
        scores: Sequence[float] | FloatArray,
        *,
        ranks: Sequence[int] | IntArray | None = None,
        roles: frozenset[str] = frozenset(),
        read_options: ReadOptions | None = None,
    ) -> Self:
        """Build from parallel columns, one retrieved document a row, in file order.

        Raises:
            DataError: Columns of different lengths, no row, an empty id, a score that is not
                finite, a document listed twice, a rank below 0 or repeated; names the row.
        """
        read_options = read_options or ReadOptions()
        refuse_ragged(queries=queries, documents=documents, scores=scores, ranks=ranks)
        values = _check_finite(scores)
        grouped = group_rows(queries, documents, "ranked document")
        values = grouped.take_column(values)
        place = assign_ranks(grouped, values, ranks, read_options)
        order = order_by_rank(place, grouped.offsets, read_options)
        order, duplicates = _drop_rows(grouped, values, order, read_options)
        offsets = grouped.offsets
        if not isinstance(order, slice) and len(order) < len(values):
            owner = query_of_rows(offsets)[order]
            offsets = to_offsets(np.bincount(owner, minlength=len(grouped.queries)))
        final = count_within_queries(offsets)
        if place is not None and read_options.rank_from == "column":
            final = place[order]
        return cls(
            name,
            grouped.queries,
            offsets,
            grouped.vocabulary,
            grouped.documents[order],
            values[order],
            final,
            roles,
            read_options,
            duplicates,
            int(np.count_nonzero(values == 0)),
        )

    @classmethod
    def from_dict(
        cls,
        name: str,
        ranked: Mapping[str, Mapping[str, float]],
        *,
        roles: frozenset[str] = frozenset(),
        read_options: ReadOptions | None = None,
    ) -> Self:
        """Build from query → document → score; the mapping's order is the file order."""
        rows = [(q, d, s) for q, docs in ranked.items() for d, s in docs.items()]
        queries, documents, scores = zip(*rows, strict=True) if rows else ((), (), ())
        return cls.from_rows(
            name, queries, documents, scores, roles=roles, read_options=read_options
        )

    def to_dict(self) -> dict[str, dict[str, float]]:
        """Query → document → score, best first."""
        return _nest_values(self, self.scores)

    def digest(self) -> str:
        """SHA-256 over ranks and scores, the same for any file format and order of queries."""
        if self._digest is None:
            columns = (self.documents, self.ranks, self.scores, self.vocabulary)
            self.remember_digest(hash_table(self.queries, self.offsets, *columns))
        return cast("str", self._digest)

    def remember_digest(self, known: str) -> None:
        """Take a digest that was computed before for these contents."""
        object.__setattr__(self, "_digest", known)


def _nest_values(table: Qrels | Run, values: NDArray[Any]) -> dict[str, dict[str, Any]]:
    """Query → document → value, in the order of the table."""
    return {
        query: {
            table.vocabulary[document]: value
            for document, value in zip(table.documents[rows], values[rows].tolist(), strict=True)
        }
        for query, rows in query_slices(table.queries, table.offsets)
    }


def _check_finite(scores: Sequence[float] | FloatArray) -> FloatArray:
    values = np.asarray(scores, dtype=np.float64)
    if not np.isfinite(values).all():
        row = int(np.flatnonzero(~np.isfinite(values))[0])
        raise DataError(f"score {values[row]} is not a finite number", row=row)
    return values


def _drop_rows(
    grouped: GroupedRows, values: FloatArray, order: IntArray | slice, read_options: ReadOptions
) -> tuple[IntArray | slice, int]:
    """The rows that the options keep, in order, and how many duplicates they drop."""
    if read_options.drop_zero_scores and not values.all():
        order = np.arange(len(values))[order]
        order = order[values[order] != 0]
    if read_options.on_duplicate == "error":
        refuse_duplicates(grouped)
        return order, 0
    is_repeat = find_repeats(grouped, order)
    duplicates = int(is_repeat.sum())
    if duplicates:
        order = np.arange(len(values))[order][~is_repeat]
    return order, duplicates
