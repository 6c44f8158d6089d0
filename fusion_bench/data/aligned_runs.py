"""Align once: runs, rerank lists, judgments on one read-only set of candidate arrays.

The candidates of query q are ``offsets[q]:offsets[q+1]``: every document that at least one source
returned for it, stored in the order of the tie rule, so that a stable sort by score settles ties.
Everything downstream is a pure function of these arrays.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, wraps
from typing import Any, Concatenate, Final, Literal, NamedTuple, ParamSpec, TypeAlias, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from fusion_bench.data import grouped_rows, ordering
from fusion_bench.data.ordering import BoolArray, FloatArray, IntArray
from fusion_bench.data.qrels import Qrels
from fusion_bench.data.records import Query, ScoreSpace, Switch
from fusion_bench.errors import AlignmentError, UnknownNameError
from fusion_bench.util.formatting import Columns, TableView, pluralize

P = ParamSpec("P")
T = TypeVar("T")


class ViewCache:
    """What cached functions returned for one view of aligned runs; never pickled."""

    def __init__(self) -> None:
        self._results: dict[Callable[..., object], dict[Hashable, object]] = {}

    def __reduce__(self) -> tuple[type[ViewCache], tuple[()]]:
        return ViewCache, ()

    def lookup(
        self,
        function: Callable[..., T],
        key: Hashable,
        compute: Callable[[], T],
        keep: int | None = None,
    ) -> T:
        """What ``compute`` returned when first asked for this function and key.

        Args:
            function: Whose result it is.
            key: Tells its calls apart.
            compute: Computes the result.
            keep: Forget the oldest results of the function beyond so many; None = keep all.
        """
        results = self._results.setdefault(function, {})
        if key not in results:
            results[key] = result = compute()
            if isinstance(result, np.ndarray):
                ordering.make_readonly(result)
            for oldest in list(results)[: max(len(results) - keep, 0)] if keep is not None else ():
                del results[oldest]
        return cast("T", results[key])


def cached_by_view(
    *, keep: int | None = None, key: Callable[..., Hashable] | None = None
) -> Callable[[Callable[Concatenate[AlignedRuns, P], T]], Callable[Concatenate[AlignedRuns, P], T]]:
    """Cache a function of aligned runs in the runs that it is called with.

    Args:
        keep: Forget the oldest results beyond so many; None = keep all.
        key: Makes a key of the other arguments; None = the arguments themselves, hashable.
    """

    def decorate(
        function: Callable[Concatenate[AlignedRuns, P], T],
    ) -> Callable[Concatenate[AlignedRuns, P], T]:
        @wraps(function)
        def cached(runs: AlignedRuns, /, *args: P.args, **kwargs: P.kwargs) -> T:
            called = (args, *kwargs.items()) if key is None else key(*args, **kwargs)
            return runs.cache.lookup(
                function, called, lambda: function(runs, *args, **kwargs), keep
            )

        return cached

    return decorate


N = TypeVar("N", bound=np.generic)


def _cut_sources(
    ranks: IntArray,
    scores: FloatArray,
    rows: Sequence[int],
    cuts: Sequence[int | None],
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
    kept_ranks, kept_scores = _take_columns(ranks, rows, kept), _take_columns(scores, rows, kept)
    for row_ranks, row_scores, cut in zip(kept_ranks, kept_scores, cuts, strict=True):
        if cut is not None:
            is_within = row_ranks <= cut
            row_ranks *= is_within
            row_scores[:] = ordering.choose_values(is_within, row_scores, np.nan)
    return kept, kept_ranks, kept_scores


def _take_columns(table: NDArray[N], rows: Sequence[int], columns: IntArray) -> NDArray[N]:
    taken = np.empty((len(rows), len(columns)), dtype=table.dtype)
    for row, values in zip(rows, taken, strict=True):
        np.take(table[row], columns, out=values, mode="clip")  # "raise" would copy twice
    return taken


#: Fields with an entry for each query; the last two may be left out.
QUERY_FIELDS: Final = ("queries", "types", "confidences", "groups", "records")

Ties: TypeAlias = Literal["trec", "first_seen"]
#: Takes the name of a field of documents, and that of a column of lists; each may be None.
ParentFinder: TypeAlias = Callable[[str | None, str | None], Mapping[str, str]]


class ChunkLists(NamedTuple):
    """Lists of chunks before they are collapsed.

    Attributes:
        runs: Of N chunks.
        parents: Shape (N,): the code of each one's parent.
        active: How many of the first sources choose the chunk that stands for its document.
    """

    runs: AlignedRuns
    parents: IntArray
    active: int

    def order_chunks(self, rows: slice) -> IntArray:
        """Places of chunks by their best rank in any active list; ties stay in storage order."""
        ranks = self.runs.ranks[: self.active, rows]
        nearest = np.where(ranks > 0, ranks, np.iinfo(np.int64).max).min(axis=0)
        return np.argsort(nearest, kind="stable")


@dataclass(frozen=True, eq=False, repr=False)
class AlignedRuns(TableView):
    """S sources and R rerank lists over the N candidates of Q judged queries.

    Attributes:
        sources: Names, (S,).
        roles: Roles of each source, (S,).
        queries: Query ids, (Q,).
        types: Query type or None, (Q,).
        confidences: How sure the classification is, None = not stated, (Q,).
        groups: Group of each query, its own id where the dataset declares none, (Q,).
        offsets: (Q+1,).
        vocabulary: Document ids, sorted by bytes.
        documents: (N,) codes into ``vocabulary``.
        ranks: (S, N), 1-based; 0 = not retrieved by that source.
        scores: (S, N); NaN = not retrieved.
        grades: (N,); 0 where unjudged.
        judged: (N,).
        rerankers: Names, (R,).
        rerank: (R, N) raw rerank scores; NaN = not scored.
        rerank_ranks: (R, N) 1-based place in the rerank list; 0 = not scored.
        ideal_offsets: (Q+1,).
        ideal_grades: Positive grades of each query's judgements, greatest first.
        ties: Tie rule: ``trec`` = greater document id first; ``first_seen`` = order of first
            appearance over the sources.
        common_documents: (S+R+1, S+R+1): documents that two of the sources, rerank lists and, last,
            the judgments share, over all judged queries of the dataset; one with itself = all of
            its own. Counted before any query or source is left out.
        top_documents: (S+R, 2): places in the first tens of each list over the same queries, and
            those of them that hold a document that is judged for any query.
        binary_relevance: The grade from which a document is relevant to what learns from it.
        records: What is known of each query, (Q,); empty = nothing.
        switches: The queries for which each source is on, None = all, (S,); empty = all of them.
        spaces: What the scores of each rerank list mean, by its name.
        qrels: The judgments that the lists were aligned with; measures that ir_measures computes
            need those of unreturned documents too.
        later: The same queries with the second, third, … file of each list that has so many; all
            above is of the first. Empty = every list has one file.
        repeat_counts: How many files each of these lists has: ``runs/NAME``, ``rerank/NAME``.
        complete: Whether a document that the judgments do not list is judged 0.
        parents: Rule → the code of the parent of each id of the vocabulary, -1 = none, (V,).
        find_parents: Returns the parents of ids by the name of a field of documents, and of a
            column of lists; None = nothing is known of either.
        chunks: (N,): code of the chunk that stands for each candidate; None = candidates are as
            the lists name them.
        origin: The lists of chunks that were collapsed; None = none were.
        cache: Values derived from these arrays, computed once.
    """

    sources: tuple[str, ...]
    roles: tuple[frozenset[str], ...]
    queries: tuple[str, ...]
    types: tuple[str | None, ...]
    confidences: tuple[float | None, ...]
    groups: tuple[str, ...]
    offsets: IntArray
    vocabulary: grouped_rows.IdVocabulary
    documents: IntArray
    ranks: IntArray
    scores: FloatArray
    grades: IntArray
    judged: BoolArray
    rerankers: tuple[str, ...]
    rerank: FloatArray
    rerank_ranks: IntArray
    ideal_offsets: IntArray
    ideal_grades: IntArray
    ties: Ties = "trec"
    common_documents: IntArray = field(default_factory=lambda: np.zeros((0, 0), np.int64))
    top_documents: IntArray = field(default_factory=lambda: np.zeros((0, 2), np.int64))
    binary_relevance: int = 1
    records: tuple[Query, ...] = field(default=(), repr=False)
    switches: tuple[Switch | None, ...] = ()
    spaces: Mapping[str, ScoreSpace] = field(default_factory=dict, repr=False)
    qrels: Qrels | None = field(default=None, repr=False)
    later: tuple[AlignedRuns, ...] = field(default=(), repr=False)
    repeat_counts: Mapping[str, int] = field(default_factory=dict, repr=False)
    complete: bool = False
    parents: Mapping[str, IntArray] = field(default_factory=dict, repr=False)
    find_parents: ParentFinder | None = field(default=None, repr=False)
    chunks: IntArray | None = field(default=None, repr=False)
    origin: ChunkLists | None = field(default=None, repr=False)
    cache: ViewCache = field(default_factory=ViewCache, init=False, repr=False)

    def __post_init__(self) -> None:
        ordering.make_arrays_readonly(self)

    def _summary(self) -> str:
        queries = pluralize(len(self.queries), "query")
        candidates = pluralize(len(self.documents), "candidate")
        rerankers = f", rerankers: {', '.join(self.rerankers)}" if self.rerankers else ""
        return (
            f"AlignedRuns({queries}, {candidates}, sources: {', '.join(self.sources)}{rerankers})"
        )

    def _table_columns(self, limit: int | None = None) -> Columns:
        rows = slice(limit)
        documents = [self.vocabulary[code] for code in self.documents[rows].tolist()]
        columns: dict[str, list[Any]] = {
            "query": [self.queries[q] for q in self.query_index[rows].tolist()],
            "document": documents,
            "grade": np.where(self.judged, self.grades, np.nan)[rows].tolist(),
        }
        for name, ranks, scores in zip(self.sources, self.ranks, self.scores, strict=True):
            columns[f"{name} rank"] = ranks[rows].tolist()
            columns[f"{name} score"] = scores[rows].tolist()
        for name, scores in zip(self.rerankers, self.rerank, strict=True):
            columns[name] = scores[rows].tolist()
        return columns

    @property
    def repeats(self) -> tuple[AlignedRuns, ...]:
        """The lists once with each of their repeats; themselves where every list has one file."""
        return (self._first, *self.later) if self.later else (self,)

    @cached_property
    def _first(self) -> AlignedRuns:
        return replace(self, later=(), repeat_counts={})

    def count_repeats(self, lists: Collection[str]) -> int:
        """How many repeats there are of what reads some lists: the fewest of several files.

        Args:
            lists: As ``runs/NAME`` and ``rerank/NAME``.

        Returns:
            1 where each of them has one file.
        """
        return min((n for key, n in self.repeat_counts.items() if key in lists), default=1)

    def common_repeats(self) -> AlignedRuns:
        """Only the repeats that every list of several files has."""
        count = self.count_repeats(self.repeat_counts)
        counts = dict.fromkeys(self.repeat_counts, count)
        return replace(self, later=self.later[: count - 1], repeat_counts=counts)

    @cached_property
    def query_index(self) -> IntArray:
        """(N,): the query that owns each candidate."""
        owner = grouped_rows.query_of_rows(self.offsets)
        ordering.make_readonly(owner)
        return owner

    @cached_property
    def group_codes(self) -> IntArray:
        """(Q,): codes of the queries' groups, numbered as they appear."""
        return grouped_rows.number_by_appearance(self.groups)[0]

    @cached_property
    def lengths(self) -> IntArray:
        """(S, Q): how many documents each source returned for each query."""
        size = len(self.queries)
        counts = [np.bincount(self.query_index[row > 0], minlength=size) for row in self.ranks]
        lengths = np.array(counts, dtype=np.int64).reshape(len(self.ranks), size)
        ordering.make_readonly(lengths)
        return lengths

    @cached_property
    def max_rank(self) -> int:
        """The greatest rank that any source gives; 0 where there are no candidates."""
        return int(self.ranks.max(initial=0))

    @cached_property
    def _used_up(self) -> bool:
        """Whether every candidate was returned by some source."""
        return bool((self.ranks > 0).any(axis=0).all())

    @cached_property
    def is_complete(self) -> bool:
        """Whether every candidate is judged."""
        return bool(self.judged.all())

    @cached_property
    def off(self) -> BoolArray:
        """(S, Q): whether a source is switched off for a query."""
        off = np.zeros((len(self.sources), len(self.queries)), dtype=bool)
        for row, switch in zip(off, self.switches, strict=False):  # no switches: all are on
            if switch is not None:
                row[:] = [query not in switch.queries for query in self.queries]
        ordering.make_readonly(off)
        return off

    def values_of(self, name: str) -> tuple[str | None, ...]:
        """(Q,): the value of a field of each query, as text; None = absent."""
        if not self.records:
            return (None,) * len(self.queries)
        return tuple(record.value_of(name) for record in self.records)

    def rows(self, sources: Sequence[str]) -> list[int]:
        """Where each source stands among the S.

        Raises:
            UnknownNameError: A source that is not aligned here.
        """
        for name in sources:
            if name not in self.sources:
                raise UnknownNameError("run", name, self.sources)
        return [self.sources.index(name) for name in sources]

    def restrict(
        self,
        sources: Sequence[str],
        depth: Mapping[str, int | None] | None = None,
        ties: Ties | None = None,
    ) -> AlignedRuns:
        """Restrict the first repeat to some sources, each cut at its depth.

        Candidates that no remaining source returned disappear. The view is made once.

        Args:
            sources: Names, in the order that ``first_seen`` ties go by.
            depth: Greatest rank to keep, by source; None or absent = all.
            ties: The tie rule of the view; None = as here.

        Raises:
            UnknownNameError: A source that is not aligned here.
        """
        ties = ties or self.ties
        cuts = tuple((depth or {}).get(name) for name in sources)
        everything = tuple(sources) == self.sources and set(cuts) == {None}
        if everything and self.ties == ties == "trec" and self._used_up:
            return self  # not remembered: what holds itself waits for the garbage collector
        return self._restricted(tuple(sources), cuts, ties)

    @cached_by_view()
    def _restricted(
        self, sources: tuple[str, ...], cuts: tuple[int | None, ...], ties: Ties
    ) -> AlignedRuns:
        index = self.rows(sources)
        kept, ranks, scores = _cut_sources(self.ranks, self.scores, index, cuts)
        if "first_seen" in {ties, self.ties}:
            query = self.query_index[kept]
            if ties == "first_seen":
                first = np.argmax(ranks > 0, axis=0)  # the source that has it first
                rank = np.take_along_axis(ranks, first[None], axis=0)[0]
                order = np.lexsort((rank, first, query))
            else:
                order = np.lexsort((-self.documents[kept], query))
            kept, ranks, scores = kept[order], ranks[:, order], scores[:, order]
        counts = np.bincount(self.query_index[kept], minlength=len(self.queries))
        return replace(
            self,
            ties=ties,
            later=(),
            repeat_counts={},
            sources=sources,
            roles=tuple(self.roles[i] for i in index),
            switches=tuple(self.switches[i] for i in index) if self.switches else (),
            offsets=grouped_rows.to_offsets(counts),
            documents=self.documents[kept],
            ranks=ranks,
            scores=scores,
            grades=self.grades[kept],
            judged=self.judged[kept],
            chunks=None if self.chunks is None else self.chunks[kept],
            rerank=_take_columns(self.rerank, range(len(self.rerank)), kept),
            rerank_ranks=_take_columns(self.rerank_ranks, range(len(self.rerank)), kept),
        )

    def find_rows(self, queries: IntArray, documents: IntArray) -> IntArray:
        """(n,): where candidates stand, by query index and document code; all must be there."""
        codes = len(self.vocabulary) + 1
        keys = self.query_index * codes + self.documents
        order = np.argsort(keys)
        return np.asarray(order[np.searchsorted(keys, queries * codes + documents, sorter=order)])

    def add_source(
        self,
        name: str,
        roles: frozenset[str],
        ranks: IntArray,
        scores: FloatArray,
        switch: Switch | None = None,
    ) -> AlignedRuns:
        """Add a source to the runs.

        Args:
            name: Its name.
            roles: Its roles.
            ranks: (N,), 1-based; 0 = not retrieved.
            scores: (N,); NaN = not retrieved.
            switch: The queries for which it is on; None = all.
        """
        switches = self.switches or (None,) * len(self.sources)
        return replace(
            self,
            switches=() if switch is None and not self.switches else (*switches, switch),
            sources=(*self.sources, name),
            roles=(*self.roles, roles),
            ranks=np.vstack([self.ranks, ranks]),
            scores=np.vstack([self.scores, scores]),
        )

    def _take_queries(self, index: Sequence[int]) -> dict[str, Any]:
        """What is known of these queries only."""
        columns = {name: getattr(self, name) for name in QUERY_FIELDS}
        return {name: tuple(map(c.__getitem__, index)) if c else c for name, c in columns.items()}

    def _take_candidates(self, rows: slice | IntArray) -> dict[str, Any]:
        """The arrays of these candidates only; a slice copies nothing."""
        return {
            "chunks": None if self.chunks is None else self.chunks[rows],
            **{name: getattr(self, name)[rows] for name in ("documents", "grades", "judged")},
            **{
                name: getattr(self, name)[:, rows]
                for name in ("ranks", "scores", "rerank", "rerank_ranks")
            },
        }

    def between(self, start: int, stop: int) -> AlignedRuns:
        """Only the queries from ``start`` up to ``stop``, without a copy of their candidates."""
        rows = slice(int(self.offsets[start]), int(self.offsets[stop]))
        ideal = slice(int(self.ideal_offsets[start]), int(self.ideal_offsets[stop]))
        return replace(
            self,
            **self._take_queries(range(start, stop)),
            **self._take_candidates(rows),
            offsets=self.offsets[start : stop + 1] - rows.start,
            ideal_offsets=self.ideal_offsets[start : stop + 1] - ideal.start,
            ideal_grades=self.ideal_grades[ideal],
        )

    def subset(self, keep: BoolArray) -> AlignedRuns:
        """Only the queries where ``keep``, shape (Q,), is true.

        Raises:
            AlignmentError: No query is left.
        """
        if not keep.any():
            raise AlignmentError("no query is left: an empty selection has no mean")
        index = np.flatnonzero(keep)
        kept = np.flatnonzero(keep[self.query_index])
        ideal = np.flatnonzero(keep[grouped_rows.query_of_rows(self.ideal_offsets)])
        return replace(
            self,
            **self._take_queries(index.tolist()),
            **self._take_candidates(kept),
            offsets=grouped_rows.to_offsets(np.diff(self.offsets)[index]),
            ideal_offsets=grouped_rows.to_offsets(np.diff(self.ideal_offsets)[index]),
            ideal_grades=self.ideal_grades[ideal],
            later=tuple(each.subset(keep) for each in self.later),
        )
