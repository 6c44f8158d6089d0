"""Candidates of every query as padded rows, sorted as integers that carry where each one stands.

A key is a quantised score, falling, with the candidate's place in storage in its low bits: one
sort of plain integers orders a list and remembers who is who. Candidates are stored in the order
of the tie rule, so equal scores come out in that order too. Neighbours nearer than the quantum
and its error are left for exact settling.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, Final, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.ordering import FloatArray, IntArray
from fusion_bench.data.view_cache import cached_by_view

KeyArray: TypeAlias = NDArray[np.signedinteger[Any]]
Which: TypeAlias = Literal["relevant", "all"]

#: Candidates of one block: its keys and what they are made of stay in the second-level cache.
BLOCK_CANDIDATES: Final = 1 << 16
#: Beyond this width 32 bits leave too few for the score.
MOST_NARROW: Final = 1 << 9


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
        own: (R,): its place in storage, from 0.
        blocks: The lists cut into blocks.
    """

    queries: IntArray
    starts: IntArray
    sizes: IntArray
    which: IntArray
    member: IntArray
    owner: IntArray
    storage_places: IntArray
    blocks: tuple[ListBlock, ...]

    @property
    def dtype(self) -> np.dtype[Any]:
        """Holds the keys of every block."""
        return _key_type(self.blocks[-1].width if self.blocks else 0)

    def candidate_grid(self, block: ListBlock) -> IntArray:
        """(n, w): every candidate; padding repeats the last of the list."""
        place = np.minimum(np.arange(block.width), self.sizes[block.rows, None] - 1)
        return self.starts[block.rows, None] + place


def _key_type(width: int) -> np.dtype[Any]:
    return np.dtype(np.int32 if width <= MOST_NARROW else np.int64)


@cached_by_view()
def candidate_lists(runs: AlignedRuns, which: Which) -> CandidateLists:
    """The lists of a view, laid out once.

    Args:
        runs: The view.
        which: Only queries with a relevant candidate, or all with any.
    """
    sizes = np.diff(runs.offsets)
    relevant = np.flatnonzero(runs.grades > 0)
    owner = runs.query_index[relevant]
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
        tuple(_cut_blocks(sizes[queries], owner)),
    )


def _cut_blocks(sizes: IntArray, owner: IntArray) -> list[ListBlock]:
    """Blocks of rising lengths."""
    blocks, start = [], 0
    while start < len(sizes):
        ahead = sizes[start : start + BLOCK_CANDIDATES]
        # Lengths rise, so a block is as wide as its last list; keep those of one key width.
        fits = ahead * np.arange(1, len(ahead) + 1) <= BLOCK_CANDIDATES
        fits &= _place_bits(ahead) == _place_bits(ahead[:1])
        stop = start + max(int(fits.sum()), 1)
        width, least = int(sizes[stop - 1]), int(sizes[start])
        first, last = np.searchsorted(owner, [start, stop])
        beyond = np.arange(least, width) >= sizes[start:stop, None]
        blocks.append(ListBlock(slice(start, stop), slice(int(first), int(last)), width, beyond))
        start = stop
    return blocks


def _place_bits(width: IntArray) -> IntArray:
    """Bits that a place in a list of this length takes."""
    return np.ceil(np.log2(np.maximum(width, 2))).astype(np.int64)


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
    """Quantised scores of one fusion.

    Attributes:
        error: Units by which a quantised score may be off.
    """

    error: float

    def __init__(self, runs: AlignedRuns, lists: CandidateLists, which: Which) -> None:
        self.runs, self.lists, self.which = runs, lists, which

    @property
    def slack(self) -> int:
        """Scores that are more units apart have keys in the same order (see below)."""
        return int(np.ceil(2 * self.error)) + 1

    def block_keys(self, number: int) -> BlockKeys:
        """The keys of one block."""
        block = self.lists.blocks[number]
        bits = int(_place_bits(np.array([block.width]))[0])
        dtype = _key_type(block.width)
        keys, unit, base = self._quantize_block(number, bits, dtype)
        keys += np.arange(block.width, dtype=dtype)
        least = block.width - block.beyond.shape[1]
        keys[:, least:][block.beyond] = np.iinfo(dtype).max
        return BlockKeys(keys, bits, unit, base)

    @abstractmethod
    def _quantize_block(
        self, number: int, bits: int, dtype: np.dtype[Any]
    ) -> tuple[KeyArray, FloatArray, FloatArray]:
        """(n, w) negative quantised scores, shifted by ``bits``; unit and base, (n, 1)."""
