"""Loops over tables in C, where they were compiled; they find what those in numpy find.

``FUSION_BENCH_NATIVE=0`` switches them off.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fusion_bench.data.ordering import KEY_SPACING, FloatArray, IntArray

try:
    from fusion_bench.data import _native as compiled
except ImportError:
    compiled = None  # type: ignore[assignment] # it was not compiled

__all__ = ["Listed", "any_twice", "candidates", "counting", "settled", "usable"]

#: Rows and codes that the loops can count.
MOST: Final = 2**31 - 1


class Listed(NamedTuple):
    """One run's rows, as far as its queries are judged.

    Attributes:
        documents: Shape (n,): own codes.
        codes: Shape (own vocabulary,): the common code of each.
        begins: Shape (Q,): where the rows of each judged query begin.
        counts: Shape (Q,): how many these are.
    """

    documents: IntArray
    codes: IntArray
    begins: IntArray
    counts: IntArray


def usable() -> bool:
    """Whether the loops were compiled and are not switched off."""
    return compiled is not None and os.environ.get("FUSION_BENCH_NATIVE") != "0"


def settled(
    scores: FloatArray, documents: IntArray, offsets: IntArray, *, by_document: bool
) -> NDArray[np.bool_] | None:
    """As :func:`~fusion_bench.data.ordering.settled`; of equals the greater document stands first.

    Args:
        scores: Shape (N,).
        documents: Shape (N,).
        offsets: Shape (Q+1,).
        by_document: Whether documents matter at all.

    Returns:
        None where some scores are so near, yet not equal, that their keys are needed.
    """
    good = np.empty(len(offsets) - 1, dtype=np.uint8)
    given = (np.ascontiguousarray(scores), np.ascontiguousarray(documents), offsets, good)
    known = compiled.settled(*given, KEY_SPACING, by_document)
    return good.view(np.bool_) if known else None


def any_twice(documents: IntArray, offsets: IntArray, size: int) -> bool:
    """Whether some query names a document twice.

    Args:
        documents: Shape (N,): codes below ``size``.
        offsets: Shape (Q+1,).
        size: How many documents there are.
    """
    return compiled.twice(np.ascontiguousarray(documents), offsets, size)


def counting(offsets: IntArray) -> IntArray:
    """1, 2, 3 … inside each query, shape (N,)."""
    counts = np.empty(int(offsets[-1]), dtype=np.int64)
    compiled.counted(np.ascontiguousarray(offsets), counts)
    return counts


def candidates(
    sources: Sequence[Listed], bits: int
) -> tuple[IntArray, IntArray, list[NDArray[np.int32]]] | None:
    """The distinct documents of every query over all runs, from the greatest code down.

    Args:
        sources: The runs.
        bits: What a common code fits into.

    Returns:
        A key of each: the query, and the complement of the code in its low bits; shape (Q+1,):
        where the keys of each query are; and of each run the place of every row among the keys,
        -1 where its query is not judged. None where there is more than can be counted.
    """
    rows = sum(int(source.counts.sum()) for source in sources)
    if rows >= MOST or not 1 <= bits < MOST.bit_length():
        return None
    keys = np.empty(rows, dtype=np.int64)  # what is never written to costs no memory
    offsets = np.empty(len(sources[0].begins) + 1, dtype=np.int64)
    places = [np.full(len(source.documents), -1, dtype=np.int32) for source in sources]
    given = tuple((*source, own) for source, own in zip(sources, places, strict=True))
    found = compiled.joined(given, bits, keys, offsets)
    return keys[:found], offsets, places
