"""What a fused score is made of, so that a trace can be held to the score."""

from __future__ import annotations

from dataclasses import dataclass

from fusion_bench.data.ordering import FloatArray

__all__ = ["Parts"]


@dataclass(frozen=True, eq=False)
class Parts:
    """The correctly rounded sum of the terms over the divisor is the score, to the last bit.

    Attributes:
        labels: What each of the T terms is.
        sources: The row of the source that a term belongs to; None = of no single source.
        terms: Shape (T, N); 0 where a term says nothing.
        divisor: Shape (N,).
    """

    labels: tuple[str, ...]
    sources: tuple[int | None, ...]
    terms: FloatArray
    divisor: FloatArray
