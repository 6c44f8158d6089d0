"""Which documents can stand above which relevant one: laid out once, for every trial.

The place of a relevant document is 1 + how many candidates of its query stand above it. The pairs
(relevant, other) that must be looked at are laid out here, most of them struck out beforehand:
under a fusion that never punishes a better rank, a document that no source puts before the
relevant one can at most tie with it, and one that no source puts behind it always stands above
or ties. Where every better rank also makes a strictly greater key, such pairs are decided.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from fusion_bench.batch.limits import BatchLimits
from fusion_bench.batch.sorted_queries import QueryPool, query_pools
from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.ordering import IntArray
from fusion_bench.data.rows.grouped_rows import count_within_queries, query_of_rows, to_offsets
from fusion_bench.data.view_cache import cached_by_view
from fusion_bench.measures.rankings.ranking import relevant_candidates


class MemberPairs(NamedTuple):
    """Pairs that no dominance decides, one relevant document after the other.

    Attributes:
        members: (n,): indices into ``PairLayout.relevant``, each with at least one pair.
        starts: (n+1,): the pairs of member m are ``starts[m]:starts[m+1]``.
        others: (P,): the other candidate.
    """

    members: IntArray
    starts: IntArray
    others: IntArray


@dataclass(frozen=True, eq=False)
class PairLayout:
    """The relevant candidates of a view and what they are compared with.

    Attributes:
        relevant: (R,): the candidates of grade 1 or better, as stored, hence sorted by query.
        above: (R,): how many others stand above whatever the weights; in a query that is sorted
            all others, which is where its documents are until they are found.
        pairs: What is counted.
        pools: Queries that are sorted.
    """

    relevant: IntArray
    above: IntArray
    pairs: MemberPairs
    pools: tuple[QueryPool, ...]


@cached_by_view()
def pair_layout(runs: AlignedRuns, limits: BatchLimits, *, pruned: bool) -> PairLayout:
    """The layout of a view, made once.

    Args:
        runs: The view.
        limits: Which queries are sorted.
        pruned: Strike out the pairs that dominance decides.
    """
    relevant, query, _ = relevant_candidates(runs)
    relevant_counts = np.bincount(query, minlength=len(runs.queries))
    is_sorted = relevant_counts > limits.counted_relevant
    above = np.where(is_sorted, np.diff(runs.offsets) - 1, 0)[query]
    pairs = _undecided_pairs(
        runs, relevant, above, np.flatnonzero(~is_sorted[query]), limits.layout_pairs, pruned=pruned
    )
    pools = query_pools(runs, np.flatnonzero(is_sorted), relevant, limits)
    return PairLayout(relevant, above, pairs, pools)


def _undecided_pairs(
    runs: AlignedRuns,
    relevant: IntArray,
    above: IntArray,
    counted: IntArray,
    at_once: int,
    *,
    pruned: bool,
) -> MemberPairs:
    """The undecided pairs; adds to ``above`` how many always stand above each document."""
    nowhere = np.iinfo(np.int32).max
    ranks = np.where(runs.ranks > 0, runs.ranks, nowhere).astype(np.int32) if pruned else None
    sizes = np.diff(runs.offsets)[runs.query_index[relevant[counted]]]
    bounds = np.searchsorted(np.cumsum(sizes), np.arange(0, sizes.sum(), at_once))
    members, others = [np.empty(0, dtype=np.int64)], [np.empty(0, dtype=np.int64)]
    for chunk in np.split(counted, np.unique(bounds)):
        document = relevant[chunk]
        query = runs.query_index[document]
        offsets = to_offsets(np.diff(runs.offsets)[query])
        row = query_of_rows(offsets)
        other = count_within_queries(offsets) - 1 + runs.offsets[query][row]
        keep = other != document[row]
        if ranks is not None:
            # Whether the other is before the document in no source, and whether behind in none.
            never, always = np.ones((2, len(other)), dtype=bool)
            for source_ranks in ranks:
                document_ranks, other_ranks = source_ranks[document[row]], source_ranks[other]
                never &= other_ranks >= document_ranks
                always &= other_ranks <= document_ranks
            above += np.bincount(chunk[row[always & keep]], minlength=len(above))
            keep &= ~(never | always)
        members.append(chunk[row[keep]])
        others.append(other[keep])
    width = np.bincount(np.concatenate(members), minlength=len(relevant))
    in_pairs = np.flatnonzero(width)
    return MemberPairs(in_pairs, to_offsets(width[in_pairs]), np.concatenate(others))
