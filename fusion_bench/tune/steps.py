"""A measure along a line: an exactly known step function of one parameter.

For each relevant document, the places where another one passes it give its rank everywhere on the
line; what it adds to the measure changes only there. Nothing is sampled.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from fusion_bench.measure import Measure
from fusion_bench.measure.engine import gains, ideal_dcg
from fusion_bench.measure.ranking import relevant_counts
from fusion_bench.order import FloatArray, IntArray
from fusion_bench.tune.line import Line

__all__ = ["Steps", "can_step", "steps"]

BoolArray: TypeAlias = NDArray[np.bool_]

#: What a measure makes of several relevant documents: their sum, or the best of them.
SUMS: Final = frozenset({"nDCG", "R", "P"})
BESTS: Final = frozenset({"RR", "Success"})
#: Pairs of documents that are looked at together.
BLOCK = 1 << 21
#: Relative difference of scores below which they tie all along.
EQUAL = 1e-13


@dataclass(frozen=True, eq=False)
class Steps:
    """A step function.

    Attributes:
        edges: Shape (E+2,): ascending, the ends of the line included.
        values: Shape (E+1,): the mean of the measure between two edges.
    """

    edges: FloatArray
    values: FloatArray

    def best(self, now: float, narrowest: float = 1e-6) -> tuple[float, float]:
        """A place inside the best stretch that is not too narrow to name, and its value.

        Args:
            now: Of equally good stretches the one that holds this is taken, else the widest.
            narrowest: As a share of the whole line.

        Returns:
            The middle of the stretch, and the mean there.
        """
        edges, values = _joined(self.edges, self.values)
        width = np.diff(edges)
        usable = width >= narrowest * (edges[-1] - edges[0])
        values = np.where(usable, values, -np.inf)
        level = np.flatnonzero(values >= values.max() - 1e-12)
        here = [i for i in level.tolist() if edges[i] <= now <= edges[i + 1]]
        chosen = here[0] if here else int(level[np.argmax(width[level])])
        return float((edges[chosen] + edges[chosen + 1]) / 2), float(values[chosen])


def can_step(measure: Measure) -> bool:
    """Whether a measure is a sum or a best over relevant documents, each going by its own rank."""
    return measure.kind in SUMS | BESTS and measure.cutoff is not None and not measure.judged_only


def steps(along: Line, low: float, high: float, measure: Measure) -> Steps:
    """The mean of a measure over all queries, everywhere between two values.

    Args:
        along: The line.
        low: Its least value.
        high: Its greatest value.
        measure: One that :func:`can_step`.
    """
    docs = _relevant(along, measure)
    by_rank = _by_rank(measure, along.top_k)
    parts = list(_changes(along, docs, by_rank, low, high))
    if not parts:
        return Steps(np.array([low, high]), np.zeros(1))
    start = np.concatenate([part.start for part in parts])
    columns = zip(*(part.events for part in parts), strict=True)
    events = _Events(*(np.concatenate(column) for column in columns))
    total = len(along.runs.queries)
    if measure.kind in SUMS:
        first = float((docs.share * start).sum())
        at, change = events.at, docs.share[events.doc] * (events.after - events.before)
    else:
        first, at, change = _bests(docs.query, start, events)
    order = np.argsort(at, kind="stable")
    edges = np.concatenate([[low], at[order], [high]])
    values = (first + np.concatenate([[0.0], np.cumsum(change[order])])) / total
    return Steps(edges, values)


class _Docs(NamedTuple):
    """Relevant candidates, query by query: their rows, queries, and what one at rank 1 adds."""

    row: IntArray
    query: IntArray
    share: FloatArray


class _Events(NamedTuple):
    """Where a relevant document (by its index) comes to be worth something else."""

    at: FloatArray
    doc: IntArray
    before: FloatArray
    after: FloatArray


class _Passes(NamedTuple):
    """Of pairs: (P,) whether the other is above at the low end; then place, pair, and +1 or −1."""

    above: BoolArray
    at: FloatArray
    pair: IntArray
    step: IntArray


class _Part(NamedTuple):
    start: FloatArray
    events: _Events


def _relevant(along: Line, measure: Measure) -> _Docs:
    runs = along.runs
    least = measure.rel if measure.binary else 1
    row = np.flatnonzero((runs.grades >= least) & (along.moving | (along.placed > 0)))
    query = runs.query_index[row]
    if measure.kind == "nDCG":
        ideal = ideal_dcg(runs, measure.dcg, measure.cutoff)[query]
        share = gains(runs.grades[row], measure.dcg) / ideal
    elif measure.kind == "R":
        share = 1 / relevant_counts(runs, measure.rel)[query]
    else:
        share = np.full(len(row), 1 / (measure.cutoff or 1) if measure.kind == "P" else 1.0)
    return _Docs(row, query, share)


def _by_rank(measure: Measure, top_k: int | None) -> FloatArray:
    """What rank r is worth as a multiple of rank 1, at r; the last entry stands for all below."""
    cutoff = min(measure.cutoff or 1, top_k or measure.cutoff or 1)
    ranks = np.arange(1, cutoff + 1)
    worth = np.ones(cutoff)
    if measure.kind == "nDCG":
        worth = 1 / np.log2(ranks + 1)
    elif measure.kind == "RR":
        worth = 1 / ranks
    return np.concatenate([[0.0], worth, [0.0]])


def _changes(
    along: Line, docs: _Docs, by_rank: FloatArray, low: float, high: float
) -> Iterator[_Part]:
    """The relevant documents some at a time, each against all that can pass it."""
    runs = along.runs
    movers = np.flatnonzero(along.moving)
    count = np.bincount(runs.query_index[movers], minlength=len(runs.queries))
    begin = np.cumsum(count) - count
    pairs = np.where(along.moving[docs.row], count[docs.query], 0)
    block = np.cumsum(pairs) // BLOCK
    for number in np.unique(block).tolist():
        mine = np.flatnonzero(block == number)
        size = pairs[mine]
        doc = np.repeat(mine, size)
        offset = np.arange(len(doc)) - np.repeat(np.cumsum(size) - size, size)
        other = movers[np.repeat(begin[docs.query[mine]], size) + offset]
        found = _passes(along, docs.row[mine], size, other, low, high)
        rank = along.placed[docs.row[mine]] + along.moving[docs.row[mine]]
        rank += np.bincount(doc[found.above] - mine[0], minlength=len(mine))
        yield _worths(mine, rank, doc[found.pair], found.at, found.step, by_rank)


def _passes(
    along: Line, row: IntArray, size: IntArray, other: IntArray, low: float, high: float
) -> _Passes:
    """Each row against ``size`` others: who stands above at the low end, and who passes where."""
    if not along.straight:
        return _fractions(along, np.repeat(row, size), other, low, high)
    ends = along.a + low * along.b, along.a + high * along.b
    noise = EQUAL * max(float(np.abs(end).max(initial=0)) for end in ends)
    first, last = (end[other] - np.repeat(end[row], size) for end in ends)
    level = np.abs(first) <= noise
    above = first > noise
    if level.any():
        tied = np.flatnonzero(level)
        earlier = (other < np.repeat(row, size))[tied] & (np.abs(last[tied]) <= noise)
        above[tied] = (last[tied] > noise) | earlier
    crossed = np.flatnonzero(np.where(above, last < -noise, last > noise))
    start = first[crossed]
    at = low + (high - low) * start / (start - last[crossed])
    return _Passes(above, at, crossed, np.where(above[crossed], -1, 1))


def _fractions(along: Line, row: IntArray, other: IntArray, low: float, high: float) -> _Passes:
    """As :func:`_passes`: by the sign of a polynomial, both denominators being above 0."""
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
) -> _Passes:
    """As :func:`_passes`, where the difference of two scores has the sign of q0 + q1·w + q2·w²."""
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
    return _Passes(over[0], np.concatenate(at), np.concatenate(pair), np.concatenate(step))


def _worths(
    mine: IntArray,
    rank: IntArray,
    doc: IntArray,
    at: FloatArray,
    step: IntArray,
    by_rank: FloatArray,
) -> _Part:
    """From passes to changes of what each document is worth."""
    last = len(by_rank) - 1
    start = by_rank[np.minimum(rank, last)]
    order = np.lexsort((at, doc))
    doc, at, step = doc[order], at[order], step[order]
    own = doc - mine[0]
    run = np.cumsum(step)
    first = np.flatnonzero(np.diff(doc, prepend=-1))
    sizes = np.diff(np.append(first, len(doc)))
    before_first = np.repeat(run[first] - step[first], sizes) if len(doc) else run
    after = rank[own] + run - before_first
    worth, was = by_rank[np.minimum(after, last)], by_rank[np.minimum(after - step, last)]
    kept = np.flatnonzero(worth != was)
    return _Part(start, _Events(at[kept], doc[kept], was[kept], worth[kept]))


def _bests(
    query: IntArray, start: FloatArray, events: _Events
) -> tuple[float, FloatArray, FloatArray]:
    """The sum over queries of the best document's worth: at the start, and where it changes."""
    begins = np.flatnonzero(np.diff(query, prepend=-1))
    sizes = np.diff(np.append(begins, len(query)))
    alone = np.repeat(sizes == 1, sizes)
    first = float(start[alone].sum())
    single = alone[events.doc]
    at, change = [events.at[single]], [(events.after - events.before)[single]]
    # Without the lone documents, by query and then along the line.
    order = np.lexsort((events.at, query[events.doc]))
    order = order[~single[order]]
    owner = query[events.doc[order]]
    for begin, size in zip(begins[sizes > 1].tolist(), sizes[sizes > 1].tolist(), strict=True):
        rows = order[slice(*np.searchsorted(owner, query[begin] + np.arange(2)).tolist())]
        best = _running(start[begin : begin + size], events, rows, begin)
        first += float(best[0])
        at.append(events.at[rows])
        change.append(np.diff(best))
    return first, np.concatenate(at), np.concatenate(change)


def _running(start: FloatArray, events: _Events, rows: IntArray, begin: int) -> FloatArray:
    """(n+1,): the best worth in one query after each of its events."""
    now = start.tolist()
    best = [max(now)]
    docs, after = (events.doc[rows] - begin).tolist(), events.after[rows].tolist()
    for doc, worth in zip(docs, after, strict=True):
        now[doc] = worth
        best.append(max(now))
    return np.array(best)


def _joined(edges: FloatArray, values: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Neighbouring stretches of one value as one."""
    differ = np.append(True, np.abs(np.diff(values)) > 1e-12)
    return np.append(edges[:-1][differ], edges[-1]), values[differ]
