"""Fusion methods: every one of the folder, by name."""

from fusion_bench.fuse._base import Fusion, WeightedFusion, fusions
from fusion_bench.fuse._compiled import Compiled, RankSum, WeightedMean, best_ranks

__all__ = [
    "Compiled",
    "Fusion",
    "RankSum",
    "WeightedFusion",
    "WeightedMean",
    "best_ranks",
    "fusions",
]
