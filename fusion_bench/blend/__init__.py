"""Rerank blends: one file each, found by name."""

from fusion_bench.blend._base import Blend, Blended, BlendTerms, BlendWeights, Fused, blends
from fusion_bench.blend._rerank_blend import RerankBlend
from fusion_bench.blend._retrieval_blend import RetrievalBlend
from fusion_bench.blend._score_spaces import fixed_scale

__all__ = [
    "Blend",
    "BlendTerms",
    "BlendWeights",
    "Blended",
    "Fused",
    "RerankBlend",
    "RetrievalBlend",
    "blends",
    "fixed_scale",
]
