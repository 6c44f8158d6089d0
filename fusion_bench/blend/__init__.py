"""Rerank blends: every one of the folder, by name."""

from fusion_bench.blend._base import Blend, Blended, Fused, Mix, RerankBlend, blends
from fusion_bench.blend._engine_form import Mixture
from fusion_bench.blend._score_spaces import fixed_scale

__all__ = ["Blend", "Blended", "Fused", "Mix", "Mixture", "RerankBlend", "blends", "fixed_scale"]
