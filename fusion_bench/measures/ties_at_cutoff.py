"""Expected values over judged documents when a group of ties lies across the end of the list."""

from __future__ import annotations

import math

import numpy as np

from fusion_bench.data.ordering import FloatArray
from fusion_bench.measures.names import Measure
from fusion_bench.measures.tied_lists import TiedLists, expectation

__all__ = ["over_the_edge"]


def over_the_edge(measure: Measure, lists: TiedLists, shown: TiedLists, limit: int) -> FloatArray:
    """Judged documents only, when a group of ties lies across the limit.

    Chance decides how many judged members of that group are returned at all. Given that number,
    they are a random order of the group's judged members cut after so many: the expected value
    is the mean over the numbers, which are distributed hypergeometrically.

    Args:
        measure: A judged-only measure.
        lists: The judged documents.
        shown: All documents.
        limit: Documents beyond this position of the whole list are not returned.
    """
    size = len(lists.runs.queries)
    across = np.flatnonzero((shown.before < limit) & (limit <= shown.before + shown.members))
    judged = shown.totals(shown.judged & (shown.grade >= 0)).astype(np.int64)
    sure = np.bincount(
        shown.owner, np.where(shown.before + shown.members < limit, judged, 0), minlength=size
    ).astype(np.int64)
    drawn = limit - shown.before[across]
    owner, members, marked = shown.owner[across], shown.members[across], judged[across]
    total = np.zeros(size)
    for number in range(int(np.minimum(drawn, marked).max(initial=0)) + 1):
        chance = np.zeros(size)
        chance[owner] = [
            _hypergeometric(number, *urn)
            for urn in zip(members.tolist(), marked.tolist(), drawn.tolist(), strict=True)
        ]
        if number == 0:
            chance[np.setdiff1d(np.arange(size), owner)] = 1.0  # the list ends before the limit
        total += chance * expectation(measure, lists, sure + number)
    return total


def _hypergeometric(number: int, members: int, marked: int, drawn: int) -> float:
    """Chance of exactly ``number`` marked ones among the drawn members."""
    if number > drawn:
        return 0.0
    ways = math.comb(marked, number) * math.comb(members - marked, drawn - number)
    return ways / math.comb(members, drawn)
