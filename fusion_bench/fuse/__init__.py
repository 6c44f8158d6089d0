"""Fusion methods: one file each, found by name."""

from fusion_bench.fuse._base import Fusion, ScoreTerms, WeightedFusion, fusions
from fusion_bench.fuse._engine_form import EngineForm, RankSum, WeightedMean, best_ranks

__all__ = [
    "EngineForm",
    "Fusion",
    "RankSum",
    "ScoreTerms",
    "WeightedFusion",
    "WeightedMean",
    "best_ranks",
    "fusions",
]
