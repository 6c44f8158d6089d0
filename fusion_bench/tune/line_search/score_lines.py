"""Where each document's score goes along one parameter, everything else standing still.

Most scores are a fraction of two straight lines in one weight: Σ w/(k+r) has the denominator 1, a
weighted mean over what the sources returned has its own for each document. So the value at which
one document passes another is known exactly, and with it every place where a measure can change.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.ordering import FloatArray, IntArray, freeze

__all__ = ["Head", "Line", "Lines"]

#: a, b, c and d of :class:`Line`.
Lines = tuple[FloatArray, FloatArray, FloatArray, FloatArray]


@dataclass(frozen=True, eq=False)
class Line:
    """The scores of N candidates as (a + w·b) / (c + w·d).

    Attributes:
        runs: The candidates, in the order that settles ties.
        a: Shape (N,).
        b: Shape (N,).
        c: Shape (N,).
        d: Shape (N,): 0 throughout where every score is a straight line.
        moving: Shape (N,): candidates that can change places with each other.
        placed: Shape (N,): place of every other candidate; 0 = dropped.
        top_k: Where the final list is cut.
        head: What a blend does with the first of the fused list; None = these are the scores of
            the whole list.
    """

    runs: AlignedRuns
    a: FloatArray
    b: FloatArray
    c: FloatArray
    d: FloatArray
    moving: NDArray[np.bool_]
    placed: IntArray
    top_k: int | None
    head: Head | None = None

    @property
    def lines(self) -> Lines:
        """a, b, c and d."""
        return self.a, self.b, self.c, self.d

    @cached_property
    def straight(self) -> bool:
        """Whether all scores are straight lines over one denominator."""
        return not self.d.any() and bool((self.c == 1).all())

    def __post_init__(self) -> None:
        for array in (self.a, self.b, self.c, self.d, self.moving, self.placed):
            freeze(array)


@dataclass(frozen=True, eq=False)
class Head:
    """A blend of the first documents of a fused list, while that list itself changes.

    Attributes:
        fused: The fused list.
        depth: So many of its first documents are blended, and stand above all others.
        scored: Shape (N,): candidates with a rerank score; blended without one, a document stands
            under all that have one, by its fused score.
    """

    fused: Line
    depth: int
    scored: NDArray[np.bool_]

    def __post_init__(self) -> None:
        freeze(self.scored)
