"""Who passes whom along a line, and where: pairs of documents, exactly.

For each relevant document all others of its query are looked at. They stand next to each other in
memory, so the first relevant documents of all queries are taken together, then the second ones,
and next to nothing has to be gathered.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from fusion_bench.data.ordering import FloatArray, IntArray
from fusion_bench.tune.line_search.score_lines import Line

__all__ = ["Crossings", "Pairs", "Passes", "crossings", "passes"]

BoolArray: TypeAlias = NDArray[np.bool_]

#: Documents that are looked at together: what is made of them stays in the cache.
BLOCK = 1 << 16
#: Relative difference of scores below which they tie all along.
EQUAL: Final = 1e-13


class Passes(NamedTuple):
    """Some relevant documents against all that can pass them.

    Attributes:
        docs: (n,): which documents, as indices into those asked about.
        above: (n,): how many others stand above each at the low end.
        at: (P,): where another one passes …
        own: (P,): … which of the n documents …
        step: (P,): … upwards, +1, or downwards, −1.
    """

    docs: IntArray
    above: IntArray
    at: FloatArray
    own: IntArray
    step: IntArray


class Crossings(NamedTuple):
    """Of pairs: (P,) whether the other is above at the low end; then place, pair, and +1 or −1."""

    above: BoolArray
    at: FloatArray
    pair: IntArray
    step: IntArray


class Pairs(NamedTuple):
    """Rows of the relevant documents, how many others each has, and these, one after the other."""

    row: IntArray
    size: IntArray
    other: IntArray

    @property
    def starts(self) -> IntArray:
        """(n,): where each document's pairs begin."""
        return np.cumsum(self.size) - self.size

    def owner(self, pairs: IntArray) -> IntArray:
        """Which relevant document each of these pairs belongs to."""
        return np.searchsorted(np.cumsum(self.size), pairs, side="right")


def passes(along: Line, rows: IntArray, low: float, high: float) -> Iterator[Passes]:
    """Every pass of a document by another one that moves.

    Args:
        along: The line.
        rows: Candidates that move, ascending.
        low: Its least value.
        high: Its greatest value.
    """
    for docs, pairs, found in crossings(along, rows, low, high):
        above = np.add.reduceat(found.above, pairs.starts, dtype=np.int64)
        yield Passes(docs, above, found.at, pairs.owner(found.pair), found.step)


def crossings(
    along: Line, rows: IntArray, low: float, high: float
) -> Iterator[tuple[IntArray, Pairs, Crossings]]:
    """The same pair by pair: which documents, against whom, and how these stand to each other."""
    ends = along.a + low * along.b, along.a + high * along.b
    noise = EQUAL * max(float(np.abs(end).max(initial=0)) for end in ends)
    for docs, pairs in _together(along, rows):
        if along.straight:
            yield docs, pairs, _straight(pairs, ends, noise, low, high)
        else:
            yield docs, pairs, _fractions(along, pairs, low, high)


def _together(along: Line, rows: IntArray) -> Iterator[tuple[IntArray, Pairs]]:
    """Relevant documents, at most one a query, with all others of their queries."""
    runs = along.runs
    movers = np.flatnonzero(along.moving)
    count = np.bincount(runs.query_index[movers], minlength=len(runs.queries))
    begin = np.cumsum(count) - count
    query = runs.query_index[rows]
    ordinal = np.arange(len(rows)) - np.searchsorted(query, query)
    block = (begin // BLOCK)[query]
    for number in np.unique(block).tolist():
        inside = np.flatnonzero(block == number)
        first, last = int(query[inside[0]]), int(query[inside[-1]])
        near = movers[begin[first] : begin[last] + count[last]]
        sizes = count[first : last + 1]
        for layer in range(int(ordinal[inside].max()) + 1):
            docs = inside[ordinal[inside] == layer]
            asked = np.zeros(last + 1 - first, dtype=bool)
            asked[query[docs] - first] = True
            other = near if asked.all() else near[np.repeat(asked, sizes)]
            yield docs, Pairs(rows[docs], count[query[docs]], other)


def _straight(
    pairs: Pairs, ends: tuple[FloatArray, FloatArray], noise: float, low: float, high: float
) -> Crossings:
    """Straight lines cross once at most: where their order at the two ends is not the same."""
    first, last = (end[pairs.other] - np.repeat(end[pairs.row], pairs.size) for end in ends)
    above = first > noise
    tied = np.flatnonzero(np.abs(first) <= noise)  # each document with itself, and few others
    earlier = pairs.other[tied] < pairs.row[pairs.owner(tied)]
    above[tied] = (last[tied] > noise) | (earlier & (np.abs(last[tied]) <= noise))
    crossed = np.flatnonzero(np.where(above, last < -noise, last > noise))
    start = first[crossed]
    at = low + (high - low) * start / (start - last[crossed])
    return Crossings(above, at, crossed, np.where(above[crossed], -1, 1))


def _fractions(along: Line, pairs: Pairs, low: float, high: float) -> Crossings:
    """By the sign of a polynomial: both denominators are above 0."""
    row, other = np.repeat(pairs.row, pairs.size), pairs.other
    a, b, c, d = (x[other] for x in along.lines)
    e, f, g, h = (x[row] for x in along.lines)
    q0 = _cleaned(a * g, -e * c)
    q1 = _cleaned(a * h, -e * d, b * g, -f * c)
    q2 = _cleaned(b * h, -f * d)
    return _curved(q0, q1, q2, other < row, low, high)


def _cleaned(*terms: FloatArray) -> FloatArray:
    """The sum of terms, exactly 0 where it is nothing but rounding."""
    total = np.add.reduce(terms)
    size = np.add.reduce([np.abs(term) for term in terms])
    return np.where(np.abs(total) <= EQUAL * size, 0.0, total)


def _curved(
    q0: FloatArray,
    q1: FloatArray,
    q2: FloatArray,
    before: BoolArray,
    low: float,
    high: float,
) -> Crossings:
    """As above, where the difference of two scores has the sign of q0 + q1·w + q2·w²."""
    with np.errstate(all="ignore"):
        root = np.sqrt(q1 * q1 - 4 * q0 * q2)  # NaN: they never meet
        half = -0.5 * (q1 + np.copysign(root, q1))
        both = np.sort(np.stack([half / q2, q0 / half]), axis=0)  # an infinite one is beyond
    ends = np.clip(np.nan_to_num(both, nan=high), low, high)
    bounds = np.concatenate([np.full((1, len(q0)), low), ends, np.full((1, len(q0)), high)])
    middle = (bounds[:-1] + bounds[1:]) / 2
    value = q0 + middle * (q1 + middle * q2)
    noise = EQUAL * (np.abs(q0) + np.abs(middle * q1) + np.abs(middle * middle * q2))
    over = np.where(np.abs(value) <= noise, before, value > 0)
    # A stretch without width says what the next one says.
    empty = bounds[1:] <= bounds[:-1]
    over[1] = np.where(empty[1], over[2], over[1])
    over[1] = np.where(empty[1] & empty[2], over[0], over[1])
    over[2] = np.where(empty[2], over[1], over[2])
    over[0] = np.where(empty[0], over[1], over[0])
    at, pair, step = [], [], []
    for i in range(2):
        changed = np.flatnonzero(over[i] != over[i + 1])
        at.append(bounds[i + 1][changed])
        pair.append(changed)
        step.append(np.where(over[i + 1][changed], 1, -1))
    return Crossings(over[0], np.concatenate(at), np.concatenate(pair), np.concatenate(step))
