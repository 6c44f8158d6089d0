"""Places of the relevant documents: one more than the number of candidates above each."""

from __future__ import annotations

from functools import partial, reduce

import numpy as np

from fusion_bench.batch import native
from fusion_bench.batch.layout import MemberPairs
from fusion_bench.batch.scoring import RankScorer, RoughTerms, exact_keys, is_above
from fusion_bench.batch.sorted_queries import sort_pool
from fusion_bench.data.ordering import IntArray


def count_ranks(scorer: RankScorer, lanes: slice, limit: int | None) -> IntArray:
    """(L, R): the place of every relevant candidate in its query, for these trials.

    Beyond the limit a place may be any that is beyond it, and need not be the only one there.
    """
    ranks = np.repeat((scorer.layout.above + 1)[:, None], lanes.stop - lanes.start, axis=1)
    if len(scorer.layout.pairs.members):
        _count_pairs(scorer, lanes, ranks)
    for pool in scorer.layout.pools:
        for lane, trial in enumerate(range(lanes.start, lanes.stop)):
            keys = partial(exact_keys, scorer.runs, scorer.trials[trial])
            scores = scorer.precise_scores(trial, pool)
            for member, place in sort_pool(pool, scores, limit, keys):
                ranks[member, lane] = place
    return np.ascontiguousarray(ranks.T)


def _count_pairs(scorer: RankScorer, lanes: slice, ranks: IntArray) -> None:
    """Add to ``ranks``, (R, L), how many are above: those in doubt by exact keys and tie rule."""
    terms, pairs = scorer.rough_terms(lanes), scorer.layout.pairs
    if native.is_usable() and len(terms.tables) <= scorer.limits.native_tables:
        above, lane, pair = native.count_pairs(terms, pairs)
    else:
        above, lane, pair = count_in_numpy(terms, pairs, scorer.limits.counted_pairs)
    ranks[pairs.members] += above
    member = pairs.members[np.searchsorted(pairs.starts, pair, side="right") - 1]
    for column, trial in enumerate(scorer.trials[lanes]):
        chosen = np.flatnonzero(lane == column)
        if len(chosen):
            members, others = member[chosen], pairs.others[pair[chosen]]
            is_beaten = is_above(scorer.runs, trial, scorer.layout.relevant[members], others)
            ranks[:, column] += np.bincount(members[is_beaten], minlength=len(ranks))


def count_in_numpy(
    terms: RoughTerms, pairs: MemberPairs, at_once: int
) -> tuple[IntArray, IntArray, IntArray]:
    """Count as :func:`fusion_bench.batch.native.count_pairs` does, about so many pairs at once."""
    lower, upper = terms.lower[pairs.members], terms.upper[pairs.members]
    above = np.empty(lower.shape, dtype=np.int64)
    doubts = []
    targets = np.arange(at_once, pairs.starts[-1] + at_once, at_once)
    cuts = np.unique(np.searchsorted(pairs.starts, targets, side="left"))
    start = 0
    for stop in np.minimum(cuts, len(lower)).tolist():
        first, last = pairs.starts[[start, stop]]
        sizes = np.diff(pairs.starts[start : stop + 1])
        parts = (
            table.take(codes[first:last], axis=0, mode="clip")
            for table, codes in zip(terms.tables, terms.codes, strict=True)
        )
        scores = reduce(np.add, parts)
        over = scores > np.repeat(upper[start:stop], sizes, axis=0)
        is_doubtful = over != (scores >= np.repeat(lower[start:stop], sizes, axis=0))
        starts = pairs.starts[start:stop] - first
        np.add.reduceat(over, starts, axis=0, dtype=np.int64, out=above[start:stop])
        doubts.append(np.flatnonzero(is_doubtful) + first * lower.shape[1])
        start = stop
    pair, lane = np.divmod(np.concatenate(doubts), lower.shape[1])
    return above, lane, pair
