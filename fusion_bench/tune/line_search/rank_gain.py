"""What a document is worth along a line: a table by rank, read wherever its rank changes."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from fusion_bench.data.ordering import FloatArray, IntArray
from fusion_bench.tune.line_search.crossings import Passes

__all__ = ["Events", "worths"]


class Events(NamedTuple):
    """Where a document (by its index) comes to be worth something else."""

    at: FloatArray
    doc: IntArray
    before: FloatArray
    after: FloatArray


def worths(found: Passes, by_rank: FloatArray) -> tuple[FloatArray, Events]:
    """What each document is worth at the low end, and where that changes.

    Args:
        found: Who passes whom.
        by_rank: What a document at rank r is worth, at r; the last entry stands for all below.

    Returns:
        (n,), and the changes, those of one document together and in their order.
    """
    last = len(by_rank) - 1
    rank = found.above + 1
    order = np.lexsort((found.at, found.own))
    own, at, step = found.own[order], found.at[order], found.step[order]
    run = np.cumsum(step)
    first = np.flatnonzero(np.diff(own, prepend=-1))
    sizes = np.diff(np.append(first, len(own)))
    after = rank[own] + run - np.repeat(run[first] - step[first], sizes)
    worth, was = by_rank[np.minimum(after, last)], by_rank[np.minimum(after - step, last)]
    kept = np.flatnonzero(worth != was)
    events = Events(at[kept], found.docs[own[kept]], was[kept], worth[kept])
    return by_rank[np.minimum(rank, last)], events
