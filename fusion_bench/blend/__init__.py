"""Rerank blends: every one of the folder, by name."""

from fusion_bench.blend._base import Blend, Blended, Fused, RerankBlend, blends
from fusion_bench.blend._compiled import Mixture
from fusion_bench.blend._scores import fixed_scale

__all__ = ["Blend", "Blended", "Fused", "Mixture", "RerankBlend", "blends", "fixed_scale"]
