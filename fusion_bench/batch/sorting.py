"""Candidates of every query as padded rows, sorted as integers that carry where each one stands.

A key is a quantized score, falling, with the candidate's place in storage in its low bits: one
sort of plain integers orders a list and remembers who is who. Candidates are stored in the order
of the tie rule, so equal scores come out in that order too. Neighbors nearer than the quantum
and its error are left for exact settling.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from fusion_bench.batch.limits import BatchLimits
from fusion_bench.batch.sorted_queries import width_batches
from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.ordering import FloatArray, IntArray
from fusion_bench.data.view_cache import cached_by_view
from fusion_bench.measures.rankings.ranking import relevant_candidates

KeyArray: TypeAlias = NDArray[np.signedinteger[Any]]
Which: TypeAlias = Literal["relevant", "all"]


class ListBlock(NamedTuple):
    """Lists of about equal length.

    Attributes:
        rows: Which of ``CandidateLists.queries``.
        members: Which of ``CandidateLists.member``.
        width: The greatest length.
        beyond: (n, w'): which of the last w' columns are padding.
    """

    rows: slice
    members: slice
    width: int
    beyond: NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class CandidateLists:
    """The candidates of some queries, shortest lists first.

    Attributes:
        queries: (n,).
        starts: (n,): first candidate of each.
        sizes: (n,).
        which: (R,): index of each relevant candidate among those of the view, as stored.
        member: (R,): the relevant candidates, by list.
        owner: (R,): list of each.
        storage_places: (R,): its place in storage, from 0.
        blocks: The lists cut into blocks.
        limits: How they are cut.
    """

    queries: IntArray
    starts: IntArray
    sizes: IntArray
    which: IntArray
    member: IntArray
    owner: IntArray
    storage_places: IntArray
    blocks: tuple[ListBlock, ...]
    limits: BatchLimits

    @property
    def longest(self) -> int:
        """The greatest length."""
        return int(self.sizes[-1]) if len(self.sizes) else 0

    def key_type(self, width: int) -> np.dtype[Any]:
        """Holds the keys of lists of this length."""
        return np.dtype(np.int32 if width <= self.limits.narrow_width else np.int64)

    def candidate_grid(self, block: ListBlock) -> IntArray:
        """(n, w): every candidate; padding repeats the last of the list."""
        place = np.minimum(np.arange(block.width), self.sizes[block.rows, None] - 1)
        return self.starts[block.rows, None] + place


@cached_by_view()
def candidate_lists(runs: AlignedRuns, which: Which, limits: BatchLimits) -> CandidateLists:
    """The lists of a view, laid out once.

    Args:
        runs: The view.
        which: Only queries with a relevant candidate, or all with any.
        limits: How they are cut into blocks.
    """
    sizes = np.diff(runs.offsets)
    relevant, owner, _ = relevant_candidates(runs)
    wanted = sizes > 0
    if which == "relevant":
        wanted &= np.bincount(owner, minlength=len(sizes)) > 0
    queries = np.flatnonzero(wanted)
    queries = queries[np.argsort(sizes[queries], kind="stable")]
    row = np.full(len(sizes), -1)
    row[queries] = np.arange(len(queries))
    by_row = np.argsort(row[owner], kind="stable")
    member = relevant[by_row]
    owner = row[owner[by_row]]
    starts = runs.offsets[queries]
    return CandidateLists(
        queries,
        starts,
        sizes[queries],
        by_row,
        member,
        owner,
        member - starts[owner],
        tuple(_cut_blocks(sizes[queries], owner, limits.block_candidates)),
        limits,
    )


def _cut_blocks(sizes: IntArray, owner: IntArray, most: int) -> Iterator[ListBlock]:
    """Blocks of rising lengths."""
    for rows in width_batches(sizes, most):
        least, width = sizes[[rows.start, rows.stop - 1]].tolist()
        first, last = np.searchsorted(owner, [rows.start, rows.stop]).tolist()
        beyond = np.arange(least, width) >= sizes[rows, None]
        yield ListBlock(rows, slice(first, last), width, beyond)


class BlockKeys(NamedTuple):
    """What one block's lists are sorted by.

    Attributes:
        keys: (n, w): the smaller the better; padding last.
        bits: How many low bits hold the place in storage.
        unit: (n, 1): what one unit of the rest is worth, of the score as the fusion decides.
        base: (n, 1): what none is worth.
    """

    keys: KeyArray
    bits: int
    unit: FloatArray
    base: FloatArray


class QuantizedScores(ABC):
    """Quantized scores of one fusion.

    Attributes:
        error: Units by which a quantized score may be off.
    """

    error: float

    def __init__(self, runs: AlignedRuns, lists: CandidateLists) -> None:
        self.runs, self.lists = runs, lists

    @property
    def slack(self) -> int:
        """Scores that are more units apart have keys in the same order (see below)."""
        return int(np.ceil(2 * self.error)) + 1

    def block_keys(self, number: int) -> BlockKeys:
        """The keys of one block."""
        block = self.lists.blocks[number]
        bits = max(block.width - 1, 1).bit_length()
        dtype = self.lists.key_type(block.width)
        keys, unit, base = self._quantize_block(number, bits, dtype)
        keys += np.arange(block.width, dtype=dtype)
        least = block.width - block.beyond.shape[1]
        keys[:, least:][block.beyond] = np.iinfo(dtype).max
        return BlockKeys(keys, bits, unit, base)

    @abstractmethod
    def _quantize_block(
        self, number: int, bits: int, dtype: np.dtype[Any]
    ) -> tuple[KeyArray, FloatArray, FloatArray]:
        """(n, w) negative quantized scores, shifted by ``bits``; unit and base, (n, 1)."""
