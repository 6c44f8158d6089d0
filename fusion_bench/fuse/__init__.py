"""Fusion methods: every one of the folder, by name."""

from fusion_bench.fuse._base import Fusion, WeightedFusion, fusions
from fusion_bench.fuse._compiled import Compiled, RankSum, WeightedMean
from fusion_bench.fuse._parts import Parts

__all__ = ["Compiled", "Fusion", "Parts", "RankSum", "WeightedFusion", "WeightedMean", "fusions"]
