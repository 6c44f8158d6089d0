"""Fusion methods: every one of the folder, by name."""

from fusion_bench.fuse._base import Fusion, WeightedFusion, fusions
from fusion_bench.fuse._engine_form import Compiled, RankSum, WeightedMean, best_ranks
from fusion_bench.fuse._score_terms import Parts

__all__ = [
    "Compiled",
    "Fusion",
    "Parts",
    "RankSum",
    "WeightedFusion",
    "WeightedMean",
    "best_ranks",
    "fusions",
]
