"""A ranked list a query, stored by columns as :mod:`fusion_bench.data.qrels` stores judgments."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, Self, cast, overload

import numpy as np
from numpy.typing import NDArray

from fusion_bench.data import grouped_rows
from fusion_bench.data.document_rows import DocumentTable, name_row, read_rows, write_trec
from fusion_bench.data.id_rules import describe_rule
from fusion_bench.data.ordering import (
    KEY_SPACING,
    ChunkScore,
    FloatArray,
    IntArray,
    make_readonly,
    merge_scores,
    positions,
    score_keys,
)
from fusion_bench.data.read_options import (
    ReadOptions,
    order_by_value,
    parse_scores,
    parse_whole_numbers,
)
from fusion_bench.data.records import Switch
from fusion_bench.errors import ConfigError, DataError, UnknownNameError
from fusion_bench.util.digests import hash_values
from fusion_bench.util.formatting import Columns, pluralize


def already_sorted(
    scores: FloatArray, offsets: IntArray, *, tie_order: IntArray | None = None
) -> NDArray[np.bool_]:
    """Which queries hold their candidates in order already, so that nothing needs sorting.

    Args:
        scores: Shape (N,), finite: every row is a candidate.
        offsets: Shape (Q+1,).
        tie_order: Shape (N,), as in :func:`positions`.

    Returns:
        Shape (Q,): true where :func:`positions` would count 1, 2, 3 … in storage order.
    """
    above, below = scores[:-1], scores[1:]
    # Keys lie no further apart than 1e-11 of their size: beyond that, rounding joins no two.
    with np.errstate(over="ignore"):
        apart = above - below
    near = np.maximum(np.abs(above), np.abs(below)) * KEY_SPACING
    fine = apart > near
    close = np.flatnonzero(np.abs(apart) <= near)
    upper, lower = score_keys(above[close]), score_keys(below[close])
    tied = True if tie_order is None else tie_order[:-1][close] <= tie_order[1:][close]
    fine[close] = (upper > lower) | ((upper == lower) & tied)
    wrong = np.flatnonzero(~fine) + 1  # the lower row of each pair
    query = np.searchsorted(offsets, wrong, side="right") - 1
    good = np.ones(len(offsets) - 1, dtype=bool)
    good[query[wrong > offsets[query]]] = False  # a query's first row has nothing above it
    return good


def _assign_ranks(
    grouped: grouped_rows.GroupedRows,
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
    places = grouped_rows.count_within_queries(grouped.offsets)
    rows = grouped_rows.rows_of(grouped.offsets, loose)
    lengths = grouped_rows.to_offsets(np.diff(grouped.offsets)[loose])
    places[rows] = positions(scores[rows], lengths, tie_order=None if ties is None else ties[rows])
    return places


def _order_by_rank(
    place: IntArray | None, offsets: IntArray, read_options: ReadOptions
) -> IntArray | slice:
    """The rows of each query in the order of their places; all as they stand where they do."""
    if place is None:
        return slice(None)
    if read_options.rank_from == "column":
        return order_by_value(place, offsets)
    here = grouped_rows.count_within_queries(offsets)
    moved = np.flatnonzero(place != here)  # mostly few
    order = np.arange(len(place))
    order[moved + (place[moved] - here[moved])] = moved
    return order


def _column_ranks(
    grouped: grouped_rows.GroupedRows, ranks: Sequence[int] | IntArray | None
) -> IntArray:
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
    query = grouped_rows.query_of_rows(grouped.offsets)
    order = np.lexsort((column, query))
    same = (np.diff(query[order]) == 0) & (np.diff(column[order]) == 0)
    if same.any():
        again = order[np.flatnonzero(same)[0] + 1]
        raise DataError(
            f"rank {column[again]} is given twice for query {grouped.queries[query[again]]!r}",
            row=grouped.original_row(int(again)),
        )
    return column


#: What a list with a repeated document needs; other repeats are errors of judgments.
KEEP_BEST = (
    "keep one row, or write 'on_duplicate: best_rank' (or 'collapse: max', if its rows are chunks) "
    "beside its path in dataset.yaml"
)
#: k of reciprocal ranks, where nothing else is said.
COLLAPSE_K: Final = 60.0


def _drop_rows(
    grouped: grouped_rows.GroupedRows,
    values: FloatArray,
    order: IntArray | slice,
    read_options: ReadOptions,
    is_own: NDArray[np.bool_] | None,
) -> tuple[IntArray | slice, int]:
    """The rows that the options keep, in order, and how many duplicates they drop."""
    if read_options.drop_zero_scores and not values.all():
        order = np.arange(len(values))[order]
        order = order[values[order] != 0]
    if is_own is not None:
        order = np.arange(len(values))[order]
        order = order[~is_own[order]]
    if read_options.collapse is not None:
        return order, 0
    if read_options.on_duplicate == "error":
        grouped_rows.refuse_duplicates(grouped, KEEP_BEST)
        return order, 0
    is_repeat = grouped_rows.find_repeats(grouped, order)
    duplicates = int(is_repeat.sum())
    if duplicates:
        order = np.arange(len(values))[order][~is_repeat]
    return order, duplicates


def _merge_rows(
    grouped: grouped_rows.GroupedRows,
    values: FloatArray,
    order: IntArray,
    score: ChunkScore,
    k: float,
) -> tuple[IntArray, FloatArray]:
    """The best row of each document, in the order of the merged scores, and these scores.

    Args:
        grouped: The rows.
        values: Shape (N,): their scores.
        order: Shape (n,): the rows that count, best first in each query.
        score: What makes one score of several.
        k: Of reciprocal ranks.

    Raises:
        DataError: A negative score that would be summed up.
    """
    if score == "sum" and (values[order] < 0).any():
        first = int(order[np.argmax(values[order] < 0)])
        raise DataError(
            f"score {values[first]:g} is negative, and collapse: sum needs scores from 0 up: "
            "write collapse: max",
            row=grouped.original_row(first),
        )
    owner = grouped_rows.query_of_rows(grouped.offsets)[order]
    counts = np.bincount(owner, minlength=len(grouped.queries))
    places = grouped_rows.count_within_queries(grouped_rows.to_offsets(counts))
    rows = np.lexsort((places, grouped.documents[order], owner))
    starts = np.flatnonzero(
        np.diff(owner[rows], prepend=-1) | np.diff(grouped.documents[order[rows]], prepend=-1)
    )
    merged = merge_scores(values[order[rows]], places[rows], starts, score, k)
    best, by_rank = order[rows[starts]], places[rows[starts]]
    final = np.lexsort((by_rank, -score_keys(merged), owner[rows[starts]]))
    return best[final], merged[final]


def _count_above(marked: NDArray[np.bool_], places: IntArray, offsets: IntArray) -> IntArray:
    """(N,): the marked rows of each row's query that do not stand below the row."""
    order = order_by_value(places, offsets)
    total = np.concatenate([[0], np.cumsum(marked[order])])
    counts = np.empty(len(order), dtype=np.int64)
    counts[order] = total[1:] - total[offsets[:-1]][grouped_rows.query_of_rows(offsets)]
    return counts


#: The note of a list whose scores are read with the opposite sign.
DISTANCES: Final = "scores are distances: less is better"


def _describe_options(read_options: ReadOptions, own: int, merged: int) -> Iterator[str]:
    """Yield a sentence for each option that makes another list of the rows.

    Args:
        read_options: The options.
        own: The rows that were dropped as the query's own documents.
        merged: The rows that were merged into others of the same document.
    """
    if read_options.collapse is not None:
        rows = pluralize(merged, "further row")
        yield f"{rows} of documents merged by 'collapse: {read_options.collapse}'"
    if read_options.order == "lower":
        yield DISTANCES
    if read_options.drop_own_id:
        yield f"{pluralize(own, 'document')} with the id of the query left out"
    if read_options.ids is not None:
        yield f"document ids are read {describe_rule(read_options.ids)}"


@dataclass(frozen=True, eq=False, repr=False)
class Run(DocumentTable):
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
        switch: The queries for which it is on; it is empty for the others. None = for all.
        bare: Query whose list may be no ranking, but any object of numbers → where it stands.
        notes: What was read in another way than a reader of the file may expect; each a sentence.
    """

    name: str
    queries: tuple[str, ...]
    offsets: IntArray
    vocabulary: grouped_rows.IdVocabulary
    documents: IntArray
    scores: FloatArray
    ranks: IntArray
    roles: frozenset[str] = frozenset()
    read_options: ReadOptions = field(default_factory=ReadOptions)
    duplicates: int = 0
    zero_scores: int = 0
    switch: Switch | None = None
    bare: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    _digest: str | None = field(default=None, init=False, repr=False)

    def __post_init__(self) -> None:
        for array in (self.offsets, self.documents, self.scores, self.ranks):
            make_readonly(array)

    @classmethod
    def from_rows(
        cls,
        name: str,
        queries: Sequence[str] | grouped_rows.CategoricalIds,
        documents: Sequence[str] | grouped_rows.CategoricalIds,
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
        grouped_rows.refuse_ragged(queries=queries, documents=documents, scores=scores, ranks=ranks)
        values = parse_scores(scores)
        grouped = grouped_rows.group_rows(queries, documents, "ranked document")
        values = grouped.take_column(values)
        if read_options.ids is not None:
            grouped = grouped_rows.change_ids(grouped, read_options.ids)
        if read_options.order == "lower":
            if read_options.drop_zero_scores:
                raise DataError(
                    "drop_zero_scores: a distance of 0 is the best match: delete the option"
                )
            values = 0.0 - values
        is_own = grouped_rows.find_own_ids(grouped) if read_options.drop_own_id else None
        place = _assign_ranks(grouped, values, ranks, read_options)
        order = _order_by_rank(place, grouped.offsets, read_options)
        order, duplicates = _drop_rows(grouped, values, order, read_options, is_own)
        offsets, merged = grouped.offsets, 0
        if read_options.collapse is not None:
            rows = np.arange(len(values))[order]
            order, scores = _merge_rows(
                *(grouped, values, rows, read_options.collapse),
                COLLAPSE_K if read_options.collapse_k is None else read_options.collapse_k,
            )
            merged = len(rows) - len(order)
            values = values.copy()
            values[order] = scores
        if not isinstance(order, slice) and len(order) < len(values):
            owner = grouped_rows.query_of_rows(offsets)[order]
            offsets = grouped_rows.to_offsets(np.bincount(owner, minlength=len(grouped.queries)))
        final = grouped_rows.count_within_queries(offsets)
        is_by_column = read_options.rank_from == "column" and read_options.collapse is None
        if place is not None and is_by_column:
            final = place[order]
            if is_own is not None:
                final = final - _count_above(is_own, place, grouped.offsets)[order]
        own = 0 if is_own is None else int(is_own.sum())
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
            0 if read_options.order == "lower" else int(np.count_nonzero(values == 0)),
            notes=tuple(_describe_options(read_options, own, merged)),
        )

    @overload
    @classmethod
    def from_dict(
        cls,
        name: str,
        ranked: object,
        /,
        *,
        roles: frozenset[str] = ...,
        read_options: ReadOptions | None = ...,
    ) -> Self: ...
    @overload
    @classmethod
    def from_dict(
        cls,
        ranked: object,
        /,
        *,
        name: str = ...,
        roles: frozenset[str] = ...,
        read_options: ReadOptions | None = ...,
    ) -> Self: ...
    @classmethod
    def from_dict(cls, *given: Any, **options: Any) -> Self:
        """Build from query → document → score, or whatever else holds ranked documents.

        Args:
            given: The name, which may be left out, and a mapping, a data frame, a ``Run`` of
                ranx, rows of ir_measures or ir_datasets; see
                :mod:`fusion_bench.data.document_rows`. Its order is the file order. A list of ids
                alone is ranked as it stands.
            options: ``name`` (by default the object's own, or ``run``), ``roles`` and
                ``read_options``, as for :meth:`from_rows`.

        Raises:
            DataError: It is of another kind, or breaks a rule of :meth:`from_rows`.

        >>> Run.from_dict("bm25", {"q1": {"d2": 9.1, "d1": 7.4}})
        Run('bm25', 1 query, 2 documents)
        >>> Run.from_dict({"q1": ["d2", "d1"]}).to_dict()
        {'q1': {'d2': 2.0, 'd1': 1.0}}
        """
        *names, ranked = given
        label = getattr(ranked, "name", None)
        named = names[0] if names else label if isinstance(label, str) and label else "run"
        rows = read_rows(ranked, "score")
        stated = options.get("read_options") or ReadOptions()
        if rows.lower_is_better and stated.order is None:
            options["read_options"] = replace(stated, order="lower")
        with name_row(rows):
            made = cls.from_rows(options.pop("name", named), *rows[:3], **options)
        return replace(made, notes=(*rows.notes, *made.notes))

    def reread(self, read_options: ReadOptions) -> Run:
        """Read the rows again with other options, by the rank column if that decided before."""
        ids, rank_from = self._id_columns(None), self.read_options.rank_from
        return type(self).from_rows(
            self.name,
            ids["query"],
            ids["document"],
            self.scores,
            ranks=self.ranks if rank_from == "column" else None,
            roles=self.roles,
            read_options=replace(read_options, rank_from=rank_from),
        )

    def switched(self, switch: Switch) -> Run:
        """Empty the list of every query for which the run is switched off."""
        is_on = np.array([query in switch.queries for query in self.queries], dtype=bool)
        rows = np.flatnonzero(is_on[grouped_rows.query_of_rows(self.offsets)])
        scores = self.scores[rows]
        is_padding_dropped = self.read_options.drop_zero_scores
        return replace(
            self,
            offsets=grouped_rows.to_offsets(np.where(is_on, np.diff(self.offsets), 0)),
            documents=self.documents[rows],
            scores=scores,
            ranks=self.ranks[rows],
            zero_scores=self.zero_scores if is_padding_dropped else int((scores == 0).sum()),
            switch=switch,
        )

    def to_dict(self) -> dict[str, dict[str, float]]:
        """Query → document → score, best first."""
        return self._nest_values(self.scores)

    def to_trec(self, path: Path | str | None = None) -> str:
        """The lists in TREC's format; written to a file if one is named.

        Where the scores alone would give another order, they count down instead.
        """
        ids, tag = self._id_columns(None), "_".join(self.name.split()) or "run"
        scores = _trec_scores(self.scores, self.documents, self.offsets).tolist()
        rows = zip(ids["query"], ids["document"], self.ranks.tolist(), scores, strict=True)
        return write_trec(((q, "Q0", d, rank, score, tag) for q, d, rank, score in rows), path)

    def _summary(self) -> str:
        documents = pluralize(len(self.documents), "document")
        return f"Run({self.name!r}, {pluralize(len(self), 'query')}, {documents})"

    def _table_columns(self, limit: int | None = None) -> Columns:
        columns = {"rank": self.ranks[:limit].tolist(), "score": self.scores[:limit].tolist()}
        return {**self._id_columns(limit), **columns}

    def digest(self) -> str:
        """SHA-256 over ranks and scores, the same for any file format and order of queries.

        Of a run with a switch it covers the queries for which it is on.
        """
        if self._digest is None:
            columns = (self.documents, self.ranks, self.scores, self.vocabulary)
            digest = grouped_rows.hash_table(self.queries, self.offsets, *columns)
            if self.switch is not None:
                digest = hash_values(digest, sorted(self.switch.queries))
            self.remember_digest(digest)
        return cast("str", self._digest)


def _trec_scores(scores: FloatArray, documents: IntArray, offsets: IntArray) -> FloatArray:
    """(N,): scores that give each list its order in any tool that reads TREC runs.

    The scores themselves where their order is that of the ranks (equal scores: the greater
    document id first); otherwise, for the whole run, the number of documents from here down.
    """
    same_query = np.diff(grouped_rows.query_of_rows(offsets)) == 0
    falls = np.diff(scores) < 0
    is_tie = (np.diff(scores) == 0) & (np.diff(documents) < 0)
    if (falls | is_tie | ~same_query).all():
        return scores
    return np.repeat(offsets[1:], np.diff(offsets)).astype(np.float64) - np.arange(len(scores))


#: The role of a list that was asked with the question as the user wrote it.
QUESTION: Final = "question"
#: Lists with one of these names have the role, if nothing gives it to any list.
QUESTION_NAMES: Final = frozenset({QUESTION, "query", "original"})


def assign_roles(
    runs: Mapping[str, Run], given: Mapping[str, str | Collection[str]] | None = None
) -> dict[str, Run]:
    """Return the runs with the roles that a call gives them, or that their names imply.

    Args:
        runs: Run by name.
        given: Role or roles by the name of a run, in place of its own.

    Raises:
        UnknownNameError: There is no such run.
        ConfigError: A role is no text.
    """
    named = dict(runs)
    for name, roles in (given or {}).items():
        if name not in runs:
            raise UnknownNameError("list", name, runs, where="roles")
        listed = [roles] if isinstance(roles, str) else [*roles]
        if not all(isinstance(role, str) and role for role in listed):
            raise ConfigError(f"roles: {name}: give a role or a list of roles, not {roles!r}")
        named[name] = replace(runs[name], roles=frozenset(listed))
    if any(QUESTION in run.roles for run in named.values()):
        return named
    for name, run in named.items():
        if name.casefold() in QUESTION_NAMES and not run.roles and name not in (given or {}):
            named[name] = replace(run, roles=frozenset({QUESTION}))
    return named
