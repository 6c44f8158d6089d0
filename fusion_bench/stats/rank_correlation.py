"""Agreement of two orders of the same items."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from fusion_bench.data.ordering import FloatArray
from fusion_bench.errors import ConfigError


@dataclass(frozen=True)
class RankCorrelation:
    """Kendall's τ-b of two orders (Kendall 1945, "The treatment of ties in ranking problems").

    (C − D) / √((P − T₁)·(P − T₂)) with C pairs in the same order, D in the opposite one, P pairs in
    all, T₁ tied in the first order and T₂ in the second.

    Attributes:
        tau: −1 to 1; NaN where all items of an order are tied.
        agreeing: C.
        opposite: D.
        tied: Pairs that are tied in one order or both.
    """

    tau: float
    agreeing: int
    opposite: int
    tied: int


def kendall_tau(first: FloatArray, second: FloatArray) -> RankCorrelation:
    """Kendall's τ-b of two columns of values, and the pairs behind it.

    Args:
        first: Shape (S,), finite; equal values tie.
        second: Shape (S,), the same items.

    Raises:
        ConfigError: Columns of different lengths.
    """
    if first.shape != second.shape or first.ndim != 1:
        raise ConfigError(
            f"two columns of one length are needed, not {first.shape}, {second.shape}"
        )
    pairs = np.triu_indices(len(first), 1)
    signs = np.sign(first[pairs[0]] - first[pairs[1]])
    others = np.sign(second[pairs[0]] - second[pairs[1]])
    products = signs * others
    spread = float(np.abs(signs).sum() * np.abs(others).sum())
    return RankCorrelation(
        tau=float(products.sum()) / math.sqrt(spread) if spread else math.nan,
        agreeing=int((products > 0).sum()),
        opposite=int((products < 0).sum()),
        tied=int((products == 0).sum()),
    )
