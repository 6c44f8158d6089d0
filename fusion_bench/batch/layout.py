"""Which documents can stand above which relevant one: laid out once, for every trial.

The place of a relevant document is 1 + how many candidates of its query stand above it. The pairs
(relevant, other) that must be looked at are laid out here, most of them struck out beforehand:
under a fusion that never punishes a better rank, a document that no source puts before the
relevant one can at most tie with it, and one that no source puts behind it always stands above
or ties. Where every better rank also makes a strictly greater key, such pairs are decided.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final, NamedTuple, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from fusion_bench.batch.sorted_queries import QueryPool, query_pools, width_batches
from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.grouped_rows import count_within_queries, query_of_rows, rows_of, to_offsets
from fusion_bench.data.ordering import IntArray
from fusion_bench.data.view_cache import cached_by_view

BoolArray: TypeAlias = NDArray[np.bool_]
T = TypeVar("T", bound=np.generic)

#: A query with more relevant candidates than this is sorted instead: a sort of its candidates
#: costs about as much as counting for so many.
MOST_COUNTED: Final = 24
#: Pairs of one block: its scores for a few trials stay in the processor's second-level cache.
BLOCK_PAIRS: Final = 64_000
#: Pairs looked at in one go while the layout is made: bounds the memory that takes.
CHUNK_PAIRS: Final = 500_000
#: Where ranks are too large to be packed into one integer, no rows are merged.
MOST_CODES: Final = 2**62


class CandidatePairs(NamedTuple):
    """Pairs that no dominance decides, sorted by relevant document.

    Attributes:
        relevant: (P,): index into ``PairLayout.relevant``.
        other: (P,): candidate.
    """

    relevant: IntArray
    other: IntArray


@dataclass(frozen=True, eq=False)
class PairBlock:
    """Some relevant documents of about equally many undecided others.

    Attributes:
        members: (n,): indices into ``PairLayout.relevant``.
        others: (w, n): row of each other document; padded with the row that scores −∞.
        earlier: (w, n): whether it is stored before the relevant one, hence wins a tie.
    """

    members: IntArray
    others: IntArray
    earlier: BoolArray


class MemberPairs(NamedTuple):
    """Pairs, one relevant document after the other.

    Attributes:
        members: (n,): indices into ``PairLayout.relevant``.
        starts: (n+1,): the pairs of member m are ``starts[m]:starts[m+1]``.
        rows: (P,): row of each other document.
        earlier: (P,): whether it is stored before the relevant one, hence wins a tie.
    """

    members: IntArray
    starts: IntArray
    rows: IntArray
    earlier: BoolArray


@dataclass(frozen=True, eq=False)
class PairLayout:
    """The relevant candidates of a view and what they are compared with.

    Attributes:
        relevant: (R,): the candidates of grade 1 or better, as stored, hence sorted by query.
        query: (R,): whose candidate each is.
        grade: (R,).
        above: (R,): how many others stand above whatever the weights; in a query that is sorted
            all others, which is where its documents are until they are found.
        rows: (U,): a candidate for each distinct row; candidates of one row score the same.
        counted: So many rows, the first ones, are those that blocks look at.
        own: (R,): row of each relevant candidate that is counted; 0 of one that is sorted.
        blocks: Relevant candidates that are counted.
        pools: Queries that are sorted.
        shared: Indices into ``relevant`` of those that are not alone in their query, ascending.
    """

    relevant: IntArray
    query: IntArray
    grade: IntArray
    above: IntArray
    rows: IntArray
    counted: int
    own_rows: IntArray
    blocks: tuple[PairBlock, ...]
    pools: tuple[QueryPool, ...]
    shared: IntArray

    @cached_property
    def member_pairs(self) -> MemberPairs:
        """The pairs of all blocks, in order of size, without padding."""
        inside = [len(self.rows) > block.others.T for block in self.blocks]
        return MemberPairs(
            members=np.concatenate([block.members for block in self.blocks]),
            starts=to_offsets(np.concatenate([keep.sum(axis=1) for keep in inside])),
            rows=_masked_parts(inside, [block.others.T for block in self.blocks]),
            earlier=_masked_parts(inside, [block.earlier.T for block in self.blocks]),
        )


def _masked_parts(inside: Sequence[BoolArray], parts: Sequence[NDArray[T]]) -> NDArray[T]:
    return np.concatenate([part[keep] for keep, part in zip(inside, parts, strict=True)])


@cached_by_view()
def pair_layout(runs: AlignedRuns, *, merged: bool, pruned: bool) -> PairLayout:
    """The layout of a view, made once.

    Args:
        runs: The view.
        merged: Candidates of equal ranks in every source score the same.
        pruned: Strike out the pairs that dominance decides.
    """
    relevant = np.flatnonzero(runs.grades > 0)
    query = runs.query_index[relevant]
    relevant_counts = np.bincount(query, minlength=len(runs.queries))
    counted = np.flatnonzero(relevant_counts[query] <= MOST_COUNTED)
    pairs, above = _undecided_pairs(runs, relevant, counted, pruned=pruned)
    sorted_queries = np.flatnonzero(relevant_counts > MOST_COUNTED)
    is_sorted = relevant_counts[query] > MOST_COUNTED
    above[is_sorted] = np.diff(runs.offsets)[query[is_sorted]] - 1
    order, members = _pair_blocks(pairs, counted, len(relevant))
    used = [relevant[counted], pairs.other[order], rows_of(runs.offsets, sorted_queries)]
    rows, row_of = _distinct_rows(runs, np.concatenate(used).astype(np.int64), merged=merged)
    first = np.concatenate(used[:2]).astype(np.int64)
    return PairLayout(
        relevant,
        query,
        runs.grades[relevant],
        above,
        rows,
        int(row_of[first].max(initial=-1)) + 1,
        np.where(is_sorted, 0, row_of[relevant]),
        _fill_blocks(pairs, members, relevant, row_of, padding=len(rows)),
        query_pools(runs, sorted_queries, relevant, row_of, padding=len(rows)),
        np.flatnonzero(relevant_counts[query] > 1),
    )


def _undecided_pairs(
    runs: AlignedRuns, relevant: IntArray, counted: IntArray, *, pruned: bool
) -> tuple[CandidatePairs, IntArray]:
    """The undecided pairs, and for every relevant document how many always stand above it."""
    above = np.zeros(len(relevant), dtype=np.int64)
    nowhere = np.iinfo(np.int32).max
    ranks = np.where(runs.ranks > 0, runs.ranks, nowhere).astype(np.int32) if pruned else None
    sizes = np.diff(runs.offsets)[runs.query_index[relevant[counted]]]
    bounds = np.searchsorted(np.cumsum(sizes), np.arange(0, sizes.sum(), CHUNK_PAIRS))
    parts = [CandidatePairs(np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64))]
    for chunk in np.split(counted, np.unique(bounds)):
        document = relevant[chunk]
        query = runs.query_index[document]
        offsets = to_offsets(np.diff(runs.offsets)[query])
        row = query_of_rows(offsets)
        other = count_within_queries(offsets) - 1 + runs.offsets[query][row]
        keep = other != document[row]
        if ranks is not None:
            never, always = _dominance_masks(ranks, document[row], other)
            above += np.bincount(chunk[row[always & keep]], minlength=len(above))
            keep &= ~(never | always)
        parts.append(CandidatePairs(chunk[row[keep]], other[keep]))
    return CandidatePairs(*(np.concatenate(columns) for columns in zip(*parts, strict=True))), above


def _dominance_masks(
    ranks: NDArray[np.int32], document: IntArray, other: IntArray
) -> tuple[BoolArray, BoolArray]:
    """Whether the other is before the document in no source, and whether it is behind in none."""
    never = np.ones(len(other), dtype=bool)
    always = np.ones(len(other), dtype=bool)
    for row in ranks:
        document_ranks, other_ranks = row[document], row[other]
        never &= other_ranks >= document_ranks
        always &= other_ranks <= document_ranks
    return never, always


def _pair_blocks(
    pairs: CandidatePairs, counted: IntArray, size: int
) -> tuple[IntArray, list[IntArray]]:
    """An order of the pairs that keeps blocks together, and the members of each block.

    Relevant documents of about equally many pairs go together, so that little is padded.
    """
    width = np.bincount(pairs.relevant, minlength=size)
    members = counted[width[counted] > 0]
    members = members[np.argsort(width[members], kind="stable")]
    blocks = list(width_batches(members, width, BLOCK_PAIRS))
    block = np.zeros(size, dtype=np.int64)
    for b, chosen in enumerate(blocks):
        block[chosen] = b
    if len(blocks) <= np.iinfo(np.uint16).max:
        return np.argsort(block.astype(np.uint16)[pairs.relevant], kind="stable"), blocks  # radix
    return np.argsort(block[pairs.relevant], kind="stable"), blocks


def _distinct_rows(runs: AlignedRuns, used: IntArray, *, merged: bool) -> tuple[IntArray, IntArray]:
    """A candidate for each distinct row, by first use, and (N,) the row of each candidate used.

    By first use: what is read together then lies together.
    """
    code = np.arange(len(runs.documents))
    radix = runs.max_rank + 1
    if merged and radix ** len(runs.sources) < MOST_CODES:
        code = np.zeros(len(runs.documents), dtype=np.int64)
        for row in runs.ranks:
            code = code * radix + row
    first = _first_of_equals(code[used])
    is_first = first == np.arange(len(first))
    row_of = np.full(len(runs.documents), -1, dtype=np.int64)
    row_of[used] = (np.cumsum(is_first) - 1)[first]
    return used[is_first], row_of


def _first_of_equals(values: IntArray) -> IntArray:
    """(n,): where each value, none of them negative, stands for the first time."""
    bits = len(values).bit_length()
    if len(values) == 0 or int(values.max()) >> (62 - bits):
        _, first, inverse = np.unique(values, return_index=True, return_inverse=True)
        return np.asarray(first[inverse], dtype=np.int64)
    # Value and place in one integer: a plain sort is several times as fast as one of indices.
    packed = values << bits | np.arange(len(values))
    packed.sort()
    order, ordered = packed & ((1 << bits) - 1), packed >> bits
    new = np.diff(ordered, prepend=-1) != 0
    first = np.empty_like(order)
    first[order] = order[new][np.cumsum(new) - 1]
    return first


def _fill_blocks(
    pairs: CandidatePairs,
    blocks: list[IntArray],
    relevant: IntArray,
    row_of: IntArray,
    *,
    padding: int,
) -> tuple[PairBlock, ...]:
    """The blocks with their pairs in place."""
    width = np.bincount(pairs.relevant, minlength=len(relevant))
    starts = np.cumsum(width) - width
    filled = []
    for members in blocks:
        depth = np.arange(int(width[members[-1]]))[:, None]
        inside = depth < width[members]
        other = pairs.other[np.where(inside, starts[members] + depth, 0)]
        filled.append(
            PairBlock(
                members,
                np.where(inside, row_of[other], padding),
                inside & (other < relevant[members]),
            )
        )
    return tuple(filled)
