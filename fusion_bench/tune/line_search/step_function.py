"""A measure along a line: an exactly known step function of one parameter.

For each relevant document, the places where another one passes it give its rank everywhere on the
line; what it adds to the measure changes only there. Nothing is sampled.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np

from fusion_bench.config.parameters import roundest
from fusion_bench.data.ordering import FloatArray, IntArray
from fusion_bench.measures import Measure
from fusion_bench.measures.compute import gains, ideal_dcg
from fusion_bench.measures.ranking import relevant_counts
from fusion_bench.tune.line_search.rank_gain import Events, worths
from fusion_bench.tune.line_search.score_lines import Line
from fusion_bench.tune.line_search.topk_membership import all_passes

__all__ = ["Steps", "can_step", "steps"]

#: What a measure makes of several relevant documents: their sum, or the best of them.
SUMS: Final = frozenset({"nDCG", "R", "P"})
BESTS: Final = frozenset({"RR", "Success"})


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
            The roundest number in the stretch, and the mean there.
        """
        edges, values = _joined(self.edges, self.values)
        width = np.diff(edges)
        usable = width >= narrowest * (edges[-1] - edges[0])
        values = np.where(usable, values, -np.inf)
        level = np.flatnonzero(values >= values.max() - 1e-12)
        here = [i for i in level.tolist() if edges[i] <= now <= edges[i + 1]]
        chosen = here[0] if here else int(level[np.argmax(width[level])])
        place = roundest(float(edges[chosen]), float(edges[chosen + 1]))
        return place, float(values[chosen])


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
    start, events = _changes(along, docs, by_rank, low, high)
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
) -> tuple[FloatArray, Events]:
    """(R,) what each document is worth at the low end, and all changes."""
    start = by_rank[np.minimum(along.placed[docs.row], len(by_rank) - 1)]
    moving = np.flatnonzero(along.moving[docs.row])
    parts = [Events(np.empty(0), np.empty(0, dtype=np.int64), np.empty(0), np.empty(0))]
    for found in all_passes(along, docs.row[moving], low, high):
        worth, events = worths(found._replace(docs=moving[found.docs]), by_rank)
        start[moving[found.docs]] = worth
        parts.append(events)
    return start, Events(*(np.concatenate(column) for column in zip(*parts, strict=True)))


def _bests(
    query: IntArray, start: FloatArray, events: Events
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


def _running(start: FloatArray, events: Events, rows: IntArray, begin: int) -> FloatArray:
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
