"""Weights as several engines take them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fusion_bench.data.ordering import FloatArray
from fusion_bench.fuse import Homogeneity, WeightedFusion

#: A sum as near to 1 is taken for 1, so that dividing twice changes nothing.
TOLERANCE = 1e-12


class NormalizedWeights(WeightedFusion):
    """Weights that are divided by their sum; none = equal ones."""

    def source_weights(self, sources: Sequence[str], roles: Sequence[frozenset[str]]) -> FloatArray:
        """(S,): weights by name or role that add up to 1."""
        weights = super().source_weights(sources, roles)
        total = float(weights.sum())
        return weights if abs(total - 1) <= TOLERANCE else np.asarray(weights / total)

    @property
    def weight_homogeneity(self) -> Homogeneity:
        """0: the weights are divided by their sum."""
        return 0
