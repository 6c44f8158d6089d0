"""Align once: runs, rerank lists and judgements on one read-only set of candidate arrays.

The candidates of query q are ``offsets[q]:offsets[q+1]``: every document that at least one source
returned for it, stored in the order of the tie rule, so that a stable sort by score settles ties.
Everything downstream is a pure function of these arrays.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal, TypeAlias, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from fusion_bench import native
from fusion_bench.codes import dense
from fusion_bench.columns import query_of_rows, rows_of, to_offsets
from fusion_bench.errors import AlignmentError, UnknownNameError
from fusion_bench.ids import Ids, pack, union
from fusion_bench.order import FloatArray, IntArray, freeze
from fusion_bench.records import Qrels, Query, Run

__all__ = ["AlignedRuns", "Ties", "align", "described"]

Ties: TypeAlias = Literal["trec", "first_seen"]
BoolArray: TypeAlias = NDArray[np.bool_]
#: Where rows stand among the candidates, and which rows these are.
Found: TypeAlias = tuple[IntArray | NDArray[np.int32], IntArray | slice]
T = TypeVar("T")
#: Rows that are sorted together.
BLOCK = 1 << 15


@dataclass(frozen=True, eq=False)
class AlignedRuns:
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
    """

    sources: tuple[str, ...]
    roles: tuple[frozenset[str], ...]
    queries: tuple[str, ...]
    types: tuple[str | None, ...]
    confidences: tuple[float | None, ...]
    groups: tuple[str, ...]
    offsets: IntArray
    vocabulary: Sequence[str]
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
    _memo: dict[tuple[object, ...], object] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        for value in vars(self).values():
            if isinstance(value, np.ndarray):
                freeze(value)

    @cached_property
    def query_index(self) -> IntArray:
        """(N,): the query that owns each candidate."""
        owner = query_of_rows(self.offsets)
        freeze(owner)
        return owner

    @cached_property
    def lengths(self) -> IntArray:
        """(S, Q): how many documents each source returned for each query."""
        counts = [
            np.bincount(self.query_index[ranks > 0], minlength=len(self.queries))
            for ranks in self.ranks
        ]
        lengths = np.array(counts, dtype=np.int64).reshape(len(self.sources), len(self.queries))
        freeze(lengths)
        return lengths

    @cached_property
    def deepest(self) -> int:
        """The greatest rank that any source gives; 0 where there are no candidates."""
        return int(self.ranks.max(initial=0))

    @cached_property
    def _used_up(self) -> bool:
        """Whether every candidate was returned by some source."""
        return bool((self.ranks > 0).any(axis=0).all())

    def memo(self, key: tuple[object, ...], compute: Callable[[], T], keep: int | None = None) -> T:
        """What ``compute`` returned when first asked under ``key``: derived arrays, made once.

        Args:
            key: Its first part names the kind.
            compute: Makes it.
            keep: Forget the oldest of the same kind beyond so many; None = keep all.
        """
        if key not in self._memo:
            self._memo[key] = compute()
            kin = [other for other in self._memo if other[0] == key[0]]
            for other in kin[: max(len(kin) - keep, 0)] if keep is not None else ():
                del self._memo[other]
        return cast("T", self._memo[key])

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
        self, sources: Sequence[str], depth: Mapping[str, int | None] | None = None
    ) -> AlignedRuns:
        """The same queries with only these sources, each cut at its depth.

        Candidates that no remaining source returned disappear. The view is made once.

        Args:
            sources: Names, in the order that ``first_seen`` ties go by.
            depth: Greatest rank to keep, by source; None or absent = all.

        Raises:
            UnknownNameError: A source that is not aligned here.
        """
        cuts = tuple((depth or {}).get(name) for name in sources)
        everything = tuple(sources) == self.sources and set(cuts) == {None}
        if everything and self.ties == "trec" and self._used_up:
            return self  # not remembered: what holds itself waits for the garbage collector
        key = ("restrict", tuple(sources), cuts)
        return self.memo(key, lambda: self._restricted(tuple(sources), cuts))

    def _restricted(self, sources: tuple[str, ...], cuts: tuple[int | None, ...]) -> AlignedRuns:
        index = self.rows(sources)
        ranks = self.ranks[index]
        for row, cut in zip(ranks, cuts, strict=True):
            if cut is not None:
                row[row > cut] = 0
        scores = np.where(ranks > 0, self.scores[index], np.nan)
        kept = np.flatnonzero((ranks > 0).any(axis=0))
        if self.ties == "first_seen":
            kept = kept[_first_seen(ranks[:, kept], self.query_index[kept])]
        counts = np.bincount(self.query_index[kept], minlength=len(self.queries))
        return replace(
            self,
            sources=sources,
            roles=tuple(self.roles[i] for i in index),
            offsets=to_offsets(counts),
            documents=self.documents[kept],
            ranks=ranks[:, kept],
            scores=scores[:, kept],
            grades=self.grades[kept],
            judged=self.judged[kept],
            rerank=self.rerank[:, kept],
            rerank_ranks=self.rerank_ranks[:, kept],
            _memo={},
        )

    def between(self, start: int, stop: int) -> AlignedRuns:
        """Only the queries from ``start`` up to ``stop``, without a copy of their candidates."""
        rows = slice(int(self.offsets[start]), int(self.offsets[stop]))
        ideal = slice(int(self.ideal_offsets[start]), int(self.ideal_offsets[stop]))
        return replace(
            self,
            queries=self.queries[start:stop],
            types=self.types[start:stop],
            confidences=self.confidences[start:stop],
            groups=self.groups[start:stop],
            offsets=self.offsets[start : stop + 1] - rows.start,
            documents=self.documents[rows],
            ranks=self.ranks[:, rows],
            scores=self.scores[:, rows],
            grades=self.grades[rows],
            judged=self.judged[rows],
            rerank=self.rerank[:, rows],
            rerank_ranks=self.rerank_ranks[:, rows],
            ideal_offsets=self.ideal_offsets[start : stop + 1] - ideal.start,
            ideal_grades=self.ideal_grades[ideal],
            _memo={},
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
        ideal = np.flatnonzero(keep[query_of_rows(self.ideal_offsets)])
        return replace(
            self,
            queries=tuple(self.queries[q] for q in index),
            types=tuple(self.types[q] for q in index),
            confidences=tuple(self.confidences[q] for q in index),
            groups=tuple(self.groups[q] for q in index),
            offsets=to_offsets(np.diff(self.offsets)[index]),
            documents=self.documents[kept],
            ranks=self.ranks[:, kept],
            scores=self.scores[:, kept],
            grades=self.grades[kept],
            judged=self.judged[kept],
            rerank=self.rerank[:, kept],
            rerank_ranks=self.rerank_ranks[:, kept],
            ideal_offsets=to_offsets(np.diff(self.ideal_offsets)[index]),
            ideal_grades=self.ideal_grades[ideal],
            _memo={},
        )


def align(
    qrels: Qrels,
    runs: Sequence[Run],
    *,
    rerankers: Sequence[Run] = (),
    queries: Mapping[str, Query] | None = None,
    ties: Ties = "trec",
    complete: bool = False,
) -> AlignedRuns:
    """Put runs, rerank lists and judgements on one set of candidates.

    Every judged query is kept, returned or not; queries that are not judged are left out.

    Args:
        qrels: The judgements.
        runs: The sources; at least one.
        rerankers: Rerank lists; what they score beyond the candidates is left out.
        queries: Types and groups, by query id.
        ties: The tie rule.
        complete: The judgements are complete: a document that is not listed is judged 0.

    Raises:
        AlignmentError: No run, two of one name, or a run or rerank list that shares no query with
            the judgements.
    """
    if not runs:
        raise AlignmentError("no run to align: at least one is needed")
    for kind, lists in (("run", runs), ("rerank list", rerankers)):
        _require_own_names(kind, lists)
        for table in lists:
            _require_common_query(kind, table, qrels)
    vocabulary, (judged_codes, *codes) = _common_vocabulary(
        [qrels.vocabulary, *(run.vocabulary for run in runs)]
    )
    bits = len(vocabulary).bit_length()
    # They are sorted by query, then by document from the greatest id down: the trec rule.
    candidates, offsets, found = _placed(qrels.queries, runs, codes, bits)
    ranks, scores = _spread(len(candidates), runs, found)
    found = [
        _find(candidates, *_keyed(run, _codes_in(vocabulary, run.vocabulary), qrels.queries, bits))
        for run in rerankers
    ]
    rerank_ranks, rerank = _spread(len(candidates), rerankers, found)
    judged, grades = _judgements(
        qrels,
        *_find(candidates, *_keyed(qrels, judged_codes, qrels.queries, bits)),
        len(candidates),
    )
    ideal_offsets, ideal_grades = _ideal(qrels)
    aligned = AlignedRuns(
        sources=tuple(run.name for run in runs),
        roles=tuple(run.roles for run in runs),
        queries=qrels.queries,
        **described(qrels, queries or {}),
        offsets=offsets,
        vocabulary=vocabulary,
        documents=~candidates & ((1 << bits) - 1),
        ranks=ranks,
        scores=scores,
        grades=grades,
        judged=judged | complete,
        rerankers=tuple(run.name for run in rerankers),
        rerank=rerank,
        rerank_ranks=rerank_ranks,
        ideal_offsets=ideal_offsets,
        ideal_grades=ideal_grades,
        ties=ties,
    )
    return aligned.restrict(aligned.sources) if ties == "first_seen" else aligned


def described(qrels: Qrels, queries: Mapping[str, Query]) -> dict[str, Any]:
    """The fields of aligned runs that say what is known of each judged query."""
    known = [queries.get(query) for query in qrels.queries]
    return {
        "types": tuple(query and query.type for query in known),
        "confidences": tuple(query and query.confidence for query in known),
        "groups": tuple(
            (query and query.group) or name
            for name, query in zip(qrels.queries, known, strict=True)
        ),
    }


def _require_own_names(kind: str, tables: Sequence[Run]) -> None:
    names = [table.name for table in tables]
    for name in names:
        if names.count(name) > 1:
            raise AlignmentError(f"two {kind}s are named {name!r}: give each its own name")


def _require_common_query(kind: str, run: Run, qrels: Qrels) -> None:
    answered = [run.queries[q] for q in np.flatnonzero(np.diff(run.offsets)).tolist()]
    if not set(answered) & set(qrels.queries):
        example = repr(answered[0]) if answered else "nothing, every row being dropped,"
        raise AlignmentError(
            f"{kind} {run.name!r} and the qrels have no query in common "
            f"(for example {example} in the {kind}, {qrels.queries[0]!r} in the qrels): "
            "check that both use the same query ids"
        )


def _common_vocabulary(tables: Sequence[Sequence[str]]) -> tuple[Sequence[str], list[IntArray]]:
    """The ids of all tables, sorted by bytes, and each table's codes among them."""
    packed = [pack(table) for table in tables]
    if None not in packed:
        return union(cast("list[Ids]", packed))
    vocabulary = tuple(sorted(set[str]().union(*tables)))
    return vocabulary, [_codes_in(vocabulary, table) for table in tables]


def _codes_in(vocabulary: Sequence[str], names: Sequence[str]) -> IntArray:
    """The code of each name; -1 for one that is not in the vocabulary."""
    if isinstance(vocabulary, Ids) and (packed := pack(names)) is not None:
        together, (known, wanted) = union([vocabulary, packed])
        lookup = np.full(len(together), -1)
        lookup[known] = np.arange(len(vocabulary))
        return lookup[wanted]
    codes = {document: code for code, document in enumerate(vocabulary)}
    return np.array([codes.get(name, -1) for name in names], dtype=np.int64)


def _placed(
    queries: tuple[str, ...], runs: Sequence[Run], codes: Sequence[IntArray], bits: int
) -> tuple[IntArray, IntArray, list[Found]]:
    """The candidates as sorted keys, their offsets, and of each run which rows stand where."""
    if native.usable() and (made := _natively(queries, runs, codes, bits)) is not None:
        return made
    sources = [_keyed(run, own, queries, bits) for run, own in zip(runs, codes, strict=True)]
    candidates, places = _candidates([keys for keys, _ in sources], bits, len(queries))
    offsets = to_offsets(np.bincount(candidates >> bits, minlength=len(queries)))
    found: list[Found] = [(at, rows) for at, (_, rows) in zip(places, sources, strict=True)]
    return candidates, offsets, found


def _natively(
    queries: tuple[str, ...], runs: Sequence[Run], codes: Sequence[IntArray], bits: int
) -> tuple[IntArray, IntArray, list[Found]] | None:
    """The same by the loop in C; None where that has no room."""
    made = native.candidates(
        [_listed(run, own, queries) for run, own in zip(runs, codes, strict=True)], bits
    )
    if made is None:
        return None
    candidates, offsets, places = made
    found: list[Found] = []
    for at in places:
        every = at.min(initial=0) >= 0
        rows: IntArray | slice = slice(None) if every else np.flatnonzero(at >= 0)
        found.append((at[rows], rows))
    return candidates, offsets, found


def _listed(run: Run, codes: IntArray, queries: tuple[str, ...]) -> native.Listed:
    """Where the rows of each judged query are."""
    index = {query: q for q, query in enumerate(run.queries)}
    own = np.array([index.get(query, -1) for query in queries], dtype=np.int64)
    counts = np.where(own >= 0, np.diff(run.offsets)[own], 0)
    documents = np.ascontiguousarray(run.documents)
    return native.Listed(documents, np.ascontiguousarray(codes), run.offsets[own], counts)


def _keyed(
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


def _candidates(
    keys: Sequence[IntArray], bits: int, queries: int
) -> tuple[IntArray, list[IntArray]]:
    """The distinct keys, sorted, and the place of each table's keys among them.

    Works on some queries at a time: what is sorted together stays in the processor's cache.
    """
    rows = sum(map(len, keys))
    step = max(queries * BLOCK // max(rows, 1), 1)
    limits = np.append(np.arange(0, queries, step), queries) << bits
    cuts = np.array([np.searchsorted(key, limits) for key in keys])
    places = [np.empty(len(key), dtype=np.int64) for key in keys]
    found: list[IntArray] = []
    before = 0
    for start, stop in zip(cuts.T[:-1], cuts.T[1:], strict=True):
        parts = [slice(*ends) for ends in zip(start.tolist(), stop.tolist(), strict=True)]
        block = np.concatenate([key[part] for key, part in zip(keys, parts, strict=True)])
        codes, distinct = dense(block)
        found.append(block[distinct])
        codes += before
        for place, part, own in zip(
            places, parts, np.split(codes, np.cumsum(stop - start)[:-1]), strict=True
        ):
            place[part] = own
        before += len(distinct)
    return np.concatenate(found), places


def _spread(size: int, runs: Sequence[Run], found: Sequence[Found]) -> tuple[IntArray, FloatArray]:
    """(S, N) ranks and scores of each run at the candidates; 0 and NaN where it has none."""
    ranks = np.zeros((len(runs), size), dtype=np.int64)
    scores = np.full((len(runs), size), np.nan)
    for s, (run, (at, rows)) in enumerate(zip(runs, found, strict=True)):
        ranks[s, at], scores[s, at] = run.ranks[rows], run.scores[rows]
    return ranks, scores


def _find(
    candidates: IntArray, keys: IntArray, rows: IntArray | slice
) -> tuple[IntArray, IntArray | slice]:
    """Places among the sorted candidates, and the rows that stand there."""
    if len(candidates) == 0:
        return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
    at = np.minimum(np.searchsorted(candidates, keys), len(candidates) - 1)
    found = np.flatnonzero(candidates[at] == keys)
    return at[found], found if isinstance(rows, slice) else rows[found]


def _judgements(
    qrels: Qrels, at: IntArray, rows: IntArray | slice, size: int
) -> tuple[NDArray[np.bool_], IntArray]:
    """(N,) whether each candidate is judged, and its grade (0 where it is not)."""
    judged = np.zeros(size, dtype=bool)
    grades = np.zeros(size, dtype=np.int64)
    judged[at], grades[at] = True, qrels.grades[rows]
    return judged, grades


def _ideal(qrels: Qrels) -> tuple[IntArray, IntArray]:
    """Positive grades of every query, greatest first, with their offsets."""
    query = query_of_rows(qrels.offsets)
    positive = np.flatnonzero(qrels.grades > 0)
    order = positive[np.lexsort((-qrels.grades[positive], query[positive]))]
    counts = np.bincount(query[positive], minlength=len(qrels.queries))
    return to_offsets(counts), qrels.grades[order]


def _first_seen(ranks: IntArray, query: IntArray) -> IntArray:
    """Order of first appearance: by query, then by first source that has it, then by its rank."""
    first = np.argmax(ranks > 0, axis=0)
    rank = np.take_along_axis(ranks, first[None], axis=0)[0]
    return np.lexsort((rank, first, query))
