"""What a fusion may tell the engine about itself, so that the engine knows no method by name.

A fusion that fits one of these forms can be evaluated by counting instead of sorting. The exact
numbers come from the same expressions as :meth:`Fusion.fuse`, term by term and bit by bit; the
engine only decides how few documents it needs them for.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from fusion_bench.order import FloatArray

__all__ = ["Compiled", "RankSum", "WeightedMean"]


@dataclass(frozen=True, eq=False)
class RankSum:
    """A sum of terms that depend on ranks alone, over one divisor.

    Attributes:
        columns: (C,): which sources each term looks at; it goes by the best rank among them.
        tables: (C, D+1): the term at each rank up to D; at index 0, of what none of them returned.
        divisor: What the correctly rounded sum is divided by; above 0.
    """

    columns: tuple[tuple[int, ...], ...]
    tables: FloatArray
    divisor: float


@dataclass(frozen=True, eq=False)
class WeightedMean:
    """Σ w_s·x_s / Σ w_s over the sources that say something of the document.

    Attributes:
        key: Two fusions of one key have the same features on the same runs.
        features: Makes the (S, N) x_s; NaN = nothing.
        weights: (S,): above 0.
    """

    key: str
    features: Callable[[], FloatArray]
    weights: FloatArray


Compiled: TypeAlias = RankSum | WeightedMean
