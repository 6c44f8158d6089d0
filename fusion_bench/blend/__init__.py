"""Rerank blends: every one of the folder, by name."""

from fusion_bench.blend._base import Blend, Blended, Fused, Mix, RerankBlend, blends

__all__ = ["Blend", "Blended", "Fused", "Mix", "RerankBlend", "blends"]
