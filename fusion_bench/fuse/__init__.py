"""Fusion methods: every one of the folder, by name."""

from fusion_bench.fuse._base import Fusion, WeightedFusion, fusions

__all__ = ["Fusion", "WeightedFusion", "fusions"]
