"""Engines' reciprocal rank fusion whose weights multiply the terms."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence

import numpy as np

from fusion_bench.data.ordering import FloatArray, IntArray
from fusion_bench.engines._dialects.sums import RankTermSum
from fusion_bench.fuse import Fusion
from fusion_bench.fuse.rrf import RRF

#: Greatest k of our method.
GREATEST_K = 1000


class ReciprocalRanks(RankTermSum):
    """Σ_s w_s / (constant + rank)."""

    @property
    @abstractmethod
    def constant(self) -> float:
        """What is added to a rank that counts from 1."""

    def term_at(self, ranks: IntArray, weight: float) -> FloatArray:
        """(n,): the term of a list of this weight."""
        return np.asarray(weight / (self.constant + ranks))

    def equivalent(self, sources: Sequence[str], roles: Sequence[frozenset[str]]) -> Fusion | None:
        """Our ``rrf``."""
        if not 0 <= self.constant <= GREATEST_K:
            return None
        weights = self.source_weights(sources, roles).tolist()
        return RRF(k=self.constant, weights=dict(zip(sources, weights, strict=True)))
