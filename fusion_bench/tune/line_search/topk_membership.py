"""Who passes whom in a list that a blend reorders among the first of a fused one.

A document among the first ``depth`` of the fused list stands above all others. So another one is
above a relevant document where it is inside *and* its final score is higher, and a relevant
document that falls out of the first is out of reach. Both are known exactly: where a document goes
in and out follows from who passes it in the fused list.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from fusion_bench.data.ordering import FloatArray, IntArray
from fusion_bench.tune.line_search.crossings import Crossings, Pairs, Passes, crossings, passes
from fusion_bench.tune.line_search.rank_gain import worths
from fusion_bench.tune.line_search.score_lines import Head, Line

__all__ = ["all_passes"]

BoolArray = NDArray[np.bool_]

#: As many places down as this, no measure looks.
OUT: Final = 1 << 20


def all_passes(along: Line, rows: IntArray, low: float, high: float) -> Iterator[Passes]:
    """Every pass of a document by another one that moves, in the final list.

    Args:
        along: The line.
        rows: Candidates that move, ascending.
        low: Its least value.
        high: Its greatest value.
    """
    if along.head is None:
        yield from passes(along, rows, low, high)
        return
    head = along.head
    members = _members(along, head, rows, low, high)
    for docs, pairs, found in crossings(along, rows, low, high):
        found = _in_tiers(head, pairs, found)
        yield _inside(members, docs, pairs, found)


def _in_tiers(head: Head, pairs: Pairs, found: Crossings) -> Crossings:
    """Blended documents with a rerank score stand above those without one, all along."""
    mine, theirs = np.repeat(head.scored[pairs.row], pairs.size), head.scored[pairs.other]
    mixed = mine != theirs
    kept = np.flatnonzero(~mixed[found.pair])
    return Crossings(
        np.where(mixed, theirs, found.above), found.at[kept], found.pair[kept], found.step[kept]
    )


@dataclass(frozen=True, eq=False)
class _Members:
    """Where candidates are among the first of the fused list.

    Attributes:
        begins: (N,): inside at the low end.
        doc: (E,): candidates that go in or out, ascending …
        at: (E,): … and where, in order for each.
    """

    begins: BoolArray
    doc: IntArray
    at: FloatArray

    def counts(self, docs: IntArray) -> tuple[IntArray, IntArray]:
        """(n,) each: which is the first event of these candidates, and how many there are."""
        first = np.searchsorted(self.doc, docs)
        return first, np.searchsorted(self.doc, docs, side="right") - first

    def inside(self, docs: IntArray, at: FloatArray) -> BoolArray:
        """(n,): whether each candidate is inside from a place of its own on."""
        # Complex numbers are ordered by their real part, then by the other. Of what happens in one
        # place, going in or out counts as the first: see _above.
        before = np.searchsorted(self.doc + 1j * self.at, docs + 1j * at, side="right")
        changed = (before - np.searchsorted(self.doc, docs)) % 2 == 1
        return np.asarray(self.begins[docs] ^ changed)


def _members(along: Line, head: Head, rows: IntArray, low: float, high: float) -> _Members:
    """Of relevant candidates, and of all that are above one of them anywhere."""
    short = (np.diff(along.runs.offsets) <= head.depth)[along.runs.query_index]
    found = _Found(np.ones(len(short), dtype=bool), [], [])
    found.add(head, rows[~short[rows]], low, high)
    rows = rows[found.ever(rows)]  # the others add nothing, whoever is above them
    asked = np.zeros(len(short), dtype=bool)
    for _, pairs, crossed in crossings(along, rows, low, high):
        tiers = _in_tiers(head, pairs, crossed)
        asked[pairs.other[tiers.above]] = True
        asked[pairs.other[tiers.pair]] = True
    asked[rows] = False
    found.add(head, np.flatnonzero(asked & ~short), low, high)
    return found.members()


@dataclass(frozen=True, eq=False)
class _Found:
    """Members in the making."""

    begins: BoolArray
    doc: list[IntArray]
    at: list[FloatArray]

    def add(self, head: Head, rows: IntArray, low: float, high: float) -> None:
        """Find where these candidates are inside; all others count as inside all along."""
        by_rank = np.concatenate([np.ones(head.depth + 1), [0.0]])
        for passed in passes(head.fused, rows, low, high):
            some = _near(passed, head.depth)
            start, events = worths(some, by_rank)
            self.begins[rows[some.docs]] = start > 0
            self.doc.append(rows[events.doc])
            self.at.append(events.at)

    def ever(self, rows: IntArray) -> BoolArray:
        """(n,): candidates that are inside somewhere."""
        return np.asarray(self.begins[rows] | np.isin(rows, np.concatenate(self.doc or [rows[:0]])))

    def members(self) -> _Members:
        """In their order."""
        doc = np.concatenate([np.empty(0, dtype=np.int64), *self.doc])
        at = np.concatenate([np.empty(0), *self.at])
        order = np.lexsort((at, doc))
        return _Members(self.begins, doc[order], at[order])


def _near(passed: Passes, depth: int) -> Passes:
    """Without the passes of documents that stay on one side of the depth all along."""
    up, down = (
        np.bincount(passed.own[passed.step == step], minlength=len(passed.docs)) for step in (1, -1)
    )
    # Those above come first: the place is one more than their number.
    near = (passed.above + up >= depth) & (passed.above - down < depth)
    kept = near[passed.own]
    return passed._replace(at=passed.at[kept], own=passed.own[kept], step=passed.step[kept])


def _inside(members: _Members, docs: IntArray, pairs: Pairs, found: Crossings) -> Passes:
    """Passes among what is inside; going in and out counts as passing, too."""
    above = found.above & members.begins[pairs.other]
    count = np.add.reduceat(above, pairs.starts, dtype=np.int64)
    count += np.where(members.begins[pairs.row], 0, OUT)
    parts = [
        _by_score(members, pairs, found),
        _by_others(members, pairs, found),
        _by_own(members, pairs),
    ]
    at, own, step = (np.concatenate(column) for column in zip(*parts, strict=True))
    return Passes(docs, count, at, own, step)


Steps = tuple[FloatArray, IntArray, IntArray]


def _by_score(members: _Members, pairs: Pairs, found: Crossings) -> Steps:
    """One that is inside comes to score higher, or lower."""
    kept = np.flatnonzero(members.inside(pairs.other[found.pair], found.at))
    return found.at[kept], pairs.owner(found.pair[kept]), found.step[kept]


def _by_others(members: _Members, pairs: Pairs, found: Crossings) -> Steps:
    """One that scores higher goes in or out."""
    first, count = members.counts(pairs.other)
    pair = np.repeat(np.arange(len(count)), count)
    event = np.arange(len(pair)) - np.repeat(np.cumsum(count) - count, count) + first[pair]
    at = members.at[event]
    kept = np.flatnonzero(_above(found, pair, at))
    entered = ((event - first[pair]) % 2 == 0) ^ members.begins[pairs.other[pair]]
    return at[kept], pairs.owner(pair[kept]), np.where(entered, 1, -1)[kept]


def _above(found: Crossings, pair: IntArray, at: FloatArray) -> BoolArray:
    """(n,): whether the other of each pair scores higher up to a place of its own."""
    over = found.above[pair]
    if not len(found.pair):
        return over
    crossed, places = found.pair, found.at  # straight lines meet once at most, so it is ascending
    index = np.minimum(np.searchsorted(crossed, pair), len(crossed) - 1)
    return np.asarray(over ^ ((crossed[index] == pair) & (places[index] < at)))


def _by_own(members: _Members, pairs: Pairs) -> Steps:
    """The relevant document itself goes in or out."""
    first, count = members.counts(pairs.row)
    own = np.repeat(np.arange(len(count)), count)
    event = np.arange(len(own)) - np.repeat(np.cumsum(count) - count, count) + first[own]
    entered = ((event - first[own]) % 2 == 0) ^ members.begins[pairs.row[own]]
    return members.at[event], own, np.where(entered, -OUT, OUT)
