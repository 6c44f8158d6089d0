"""Which documents can stand above which relevant one: laid out once, for every trial.

The place of a relevant document is 1 + how many candidates of its query stand above it. The pairs
(relevant, other) that must be looked at are laid out here, most of them struck out beforehand:
under a fusion that never punishes a better rank, a document that no source puts before the
relevant one can at most tie with it, and one that no source puts behind it always stands above
or ties. Where every better rank also makes a strictly greater key, such pairs are decided.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Final, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from fusion_bench.align import AlignedRuns
from fusion_bench.columns import counting, query_of_rows, to_offsets
from fusion_bench.order import IntArray

__all__ = ["Block", "Layout", "Pool", "best_ranks", "layout_of"]

BoolArray: TypeAlias = NDArray[np.bool_]

#: A query with more relevant candidates than this is sorted instead: a sort of its candidates
#: costs about as much as counting for so many.
MOST_COUNTED: Final = 24
#: Pairs of one block: its scores for a few trials stay in the processor's second-level cache.
BLOCK_PAIRS: Final = 24_000
#: Pairs looked at in one go while the layout is made: bounds the memory that takes.
CHUNK_PAIRS: Final = 500_000
#: Where ranks are too large to be packed into one integer, no rows are merged.
MOST_CODES: Final = 2**62


class Pairs(NamedTuple):
    """Pairs that no dominance decides, sorted by relevant document.

    Attributes:
        relevant: (P,): index into ``Layout.relevant``.
        other: (P,): candidate.
    """

    relevant: IntArray
    other: IntArray


@dataclass(frozen=True, eq=False)
class Block:
    """Some relevant documents of about equally many undecided others.

    Attributes:
        members: (n,): indices into ``Layout.relevant``.
        others: (w, n): row of each other document; padded with the row that scores −∞.
        earlier: (w, n): whether it is stored before the relevant one, hence wins a tie.
    """

    members: IntArray
    others: IntArray
    earlier: BoolArray


@dataclass(frozen=True, eq=False)
class Pool:
    """One query that is sorted.

    Attributes:
        members: (n,): indices into ``Layout.relevant``.
        places: (n,): where each member stands among the candidates, as stored.
        rows: (c,): row of each candidate, as stored.
    """

    members: IntArray
    places: IntArray
    rows: IntArray


@dataclass(frozen=True, eq=False)
class Layout:
    """The relevant candidates of a view and what they are compared with.

    Attributes:
        relevant: (R,): the candidates of grade 1 or better, as stored, hence sorted by query.
        query: (R,): whose candidate each is.
        grade: (R,).
        above: (R,): how many others stand above whatever the weights.
        rows: (U,): a candidate for each distinct row; candidates of one row score the same.
        own: (R,): row of each relevant candidate.
        blocks: Relevant candidates that are counted.
        pools: Queries that are sorted.
        shared: Indices into ``relevant`` of those that are not alone in their query, ascending.
    """

    relevant: IntArray
    query: IntArray
    grade: IntArray
    above: IntArray
    rows: IntArray
    own: IntArray
    blocks: tuple[Block, ...]
    pools: tuple[Pool, ...]
    shared: IntArray


def layout_of(runs: AlignedRuns, *, merged: bool, pruned: bool) -> Layout:
    """The layout of a view, made once.

    Args:
        runs: The view.
        merged: Candidates of equal ranks in every source score the same.
        pruned: Strike out the pairs that dominance decides.
    """
    key = ("engine", "layout", merged, pruned)
    return runs.memo(key, partial(_layout, runs, merged=merged, pruned=pruned))


def best_ranks(ranks: IntArray) -> IntArray:
    """(n,): the best of (S, n) ranks; 0 where all are 0."""
    nowhere = np.iinfo(np.int64).max
    best = np.min(np.where(ranks > 0, ranks, nowhere), axis=0, initial=nowhere)
    return np.where(best == nowhere, 0, best)


def _layout(runs: AlignedRuns, *, merged: bool, pruned: bool) -> Layout:
    relevant = np.flatnonzero(runs.grades > 0)
    query = runs.query_index[relevant]
    found = np.bincount(query, minlength=len(runs.queries))
    counted = np.flatnonzero(found[query] <= MOST_COUNTED)
    pairs, above = _pairs(runs, relevant, counted, pruned=pruned)
    sorted_queries = np.flatnonzero(found > MOST_COUNTED)
    ends = to_offsets(found)
    spans = [np.arange(runs.offsets[q], runs.offsets[q + 1]) for q in sorted_queries]
    order, members = _blocks(pairs, counted, len(relevant))
    used = np.concatenate([relevant[counted], pairs.other[order], *spans]).astype(np.int64)
    rows, row_of = _rows(runs, used, merged=merged)
    pools = tuple(
        Pool(
            np.arange(ends[q], ends[q + 1]),
            relevant[ends[q] : ends[q + 1]] - runs.offsets[q],
            row_of[span],
        )
        for q, span in zip(sorted_queries.tolist(), spans, strict=True)
    )
    blocks = _filled(pairs, members, relevant, row_of, padding=len(rows))
    shared = np.flatnonzero(found[query] > 1)
    return Layout(
        relevant,
        query,
        runs.grades[relevant],
        above,
        rows,
        row_of[relevant],
        blocks,
        pools,
        shared,
    )


def _pairs(
    runs: AlignedRuns, relevant: IntArray, counted: IntArray, *, pruned: bool
) -> tuple[Pairs, IntArray]:
    """The undecided pairs, and for every relevant document how many always stand above it."""
    above = np.zeros(len(relevant), dtype=np.int64)
    nowhere = np.iinfo(np.int32).max
    ranks = np.where(runs.ranks > 0, runs.ranks, nowhere).astype(np.int32) if pruned else None
    sizes = np.diff(runs.offsets)[runs.query_index[relevant[counted]]]
    bounds = np.searchsorted(np.cumsum(sizes), np.arange(0, sizes.sum(), CHUNK_PAIRS))
    parts = [Pairs(np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64))]
    for chunk in np.split(counted, np.unique(bounds)):
        document = relevant[chunk]
        query = runs.query_index[document]
        offsets = to_offsets(np.diff(runs.offsets)[query])
        mine = query_of_rows(offsets)
        other = counting(offsets) - 1 + runs.offsets[query][mine]
        keep = other != document[mine]
        if ranks is not None:
            never, always = _dominance(ranks, document[mine], other)
            above += np.bincount(chunk[mine[always & keep]], minlength=len(above))
            keep &= ~(never | always)
        parts.append(Pairs(chunk[mine[keep]], other[keep]))
    return Pairs(*(np.concatenate(columns) for columns in zip(*parts, strict=True))), above


def _dominance(
    ranks: NDArray[np.int32], document: IntArray, other: IntArray
) -> tuple[BoolArray, BoolArray]:
    """Whether the other is before the document in no source, and whether it is behind in none."""
    never = np.ones(len(other), dtype=bool)
    always = np.ones(len(other), dtype=bool)
    for row in ranks:
        its, theirs = row[document], row[other]
        never &= theirs >= its
        always &= theirs <= its
    return never, always


def _blocks(pairs: Pairs, counted: IntArray, size: int) -> tuple[IntArray, list[IntArray]]:
    """An order of the pairs that keeps blocks together, and the members of each block.

    Relevant documents of about equally many pairs go together, so that little is padded.
    """
    width = np.bincount(pairs.relevant, minlength=size)
    members = counted[width[counted] > 0]
    members = members[np.argsort(width[members], kind="stable")]
    blocks: list[IntArray] = []
    start = 0
    while start < len(members):
        # Widths rise, so a block is as wide as its last member.
        ahead = width[members[start : start + BLOCK_PAIRS]]
        fits = ahead * np.arange(1, len(ahead) + 1) <= BLOCK_PAIRS
        take = max(int(fits.sum()), 1)
        blocks.append(members[start : start + take])
        start += take
    block = np.zeros(size, dtype=np.int64)
    for b, chosen in enumerate(blocks):
        block[chosen] = b
    return np.argsort(block[pairs.relevant], kind="stable"), blocks


def _rows(runs: AlignedRuns, used: IntArray, *, merged: bool) -> tuple[IntArray, IntArray]:
    """A candidate for each distinct row, by first use, and (N,) the row of each candidate used.

    By first use: what is read together then lies together.
    """
    code = np.arange(len(runs.documents))
    radix = runs.deepest + 1
    if merged and radix ** len(runs.sources) < MOST_CODES:
        code = np.zeros(len(runs.documents), dtype=np.int64)
        for row in runs.ranks:
            code = code * radix + row
    _, first, inverse = np.unique(code[used], return_index=True, return_inverse=True)
    by_use = np.argsort(first)
    place = np.empty(len(first), dtype=np.int64)
    place[by_use] = np.arange(len(first))
    row_of = np.full(len(runs.documents), -1, dtype=np.int64)
    row_of[used] = place[inverse]
    return used[first[by_use]], row_of


def _filled(
    pairs: Pairs, blocks: list[IntArray], relevant: IntArray, row_of: IntArray, *, padding: int
) -> tuple[Block, ...]:
    """The blocks with their pairs in place."""
    width = np.bincount(pairs.relevant, minlength=len(relevant))
    starts = np.cumsum(width) - width
    filled = []
    for members in blocks:
        depth = np.arange(int(width[members[-1]]))[:, None]
        inside = depth < width[members]
        other = pairs.other[np.where(inside, starts[members] + depth, 0)]
        filled.append(
            Block(
                members,
                np.where(inside, row_of[other], padding),
                inside & (other < relevant[members]),
            )
        )
    return tuple(filled)
