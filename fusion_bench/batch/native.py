"""The counting loop in C, where it was compiled; it finds the same places as the one in numpy.

``FUSION_BENCH_NATIVE=0`` switches it off.
"""

from __future__ import annotations

import os
from typing import Final

import numpy as np
from numpy.typing import NDArray

from fusion_bench.batch.layout import MemberPairs
from fusion_bench.batch.scoring import RoughArray, RoughTerms
from fusion_bench.data.ordering import IntArray

try:
    from fusion_bench.batch import _native
except ImportError:
    _native = None  # type: ignore[assignment] # it was not compiled

#: It counts for one trial, or for so many side by side.
LANES: Final = 8
#: Room for pairs in doubt; where there are more, it is made and the loop runs again.
DOUBT_CAPACITY: Final = 4_096


def is_usable() -> bool:
    """Whether the loop was compiled and is not switched off."""
    return _native is not None and os.environ.get("FUSION_BENCH_NATIVE") != "0"


def count_pairs(
    sums: RoughTerms, pairs: MemberPairs, *, doubt_capacity: int = DOUBT_CAPACITY
) -> tuple[IntArray, IntArray, IntArray]:
    """Count, for each member, the other documents that stand above it for certain.

    Args:
        sums: For L trials, at most ``LANES``, of at most 16 tables.
        pairs: n members and their P pairs.
        doubt_capacity: Pairs in doubt to make room for at first.

    Returns:
        (n, L) how many are above; and of each pair in doubt the trial and the index, (d,) each.
    """
    lanes = sums.lower.shape[1]
    width = 1 if lanes == 1 else LANES
    tables = tuple(_pad_lanes(table, width, 0.0) for table in sums.tables)
    # Nothing is above or in doubt in a lane that is only there to fill up.
    lower = _pad_lanes(sums.lower[pairs.members], width, np.inf)
    upper = _pad_lanes(sums.upper[pairs.members], width, np.inf)
    above = np.empty((len(pairs.members), width), dtype=np.int64)
    room, doubts = 0, doubt_capacity
    while doubts > room:
        room = doubts
        pair, between = np.empty(room, dtype=np.int64), np.empty(room, dtype=np.uint8)
        doubts = _native.count(
            tables, sums.codes, pairs.starts, lower, upper, above, pair, between, width
        )
    which, lane = np.nonzero(np.unpackbits(between[:doubts, None], axis=1, bitorder="little"))
    return above[:, :lanes], lane, pair[:doubts][which]


def _pad_lanes(table: RoughArray, width: int, value: float) -> NDArray[np.float32]:
    """(n, width) and contiguous: the given columns, and ``value`` in those that are missing."""
    missing = width - table.shape[1]
    if missing:
        table = np.pad(table, ((0, 0), (0, missing)), constant_values=value)
    return np.ascontiguousarray(table, dtype=np.float32)
