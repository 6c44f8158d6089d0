"""Fixed curves, the same for every list."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from fusion_bench.data.ordering import FloatArray
from fusion_bench.normalize._base import Normalizer, ScoreLists, normalizers


def sigmoid(values: FloatArray) -> FloatArray:
    """1 / (1 + e^−x), without a warning where e^−x overflows and the result is 0."""
    with np.errstate(over="ignore"):
        return np.asarray(1 / (1 + np.exp(-values)))


@normalizers.register
class SigmoidScale(Normalizer):
    """``sigmoid``: 1 / (1 + e^−x)."""

    keeps_order: ClassVar[bool] = False

    method: str = "sigmoid"

    def scale_lists(self, lists: ScoreLists) -> FloatArray:
        """(n,): in [0, 1]."""
        return sigmoid(lists.scores)


@normalizers.register
class ArctanScale(Normalizer):
    """``arctan``: 2/π · atan(x); negative scores stay negative."""

    keeps_order: ClassVar[bool] = False

    method: str = "arctan"

    def scale_lists(self, lists: ScoreLists) -> FloatArray:
        """(n,): in [−1, 1]."""
        return 2 / np.pi * np.arctan(lists.scores)
