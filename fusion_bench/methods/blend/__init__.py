"""Rerank blends: one file each, found by name."""

from fusion_bench.methods.blend._base import Blend as Blend
from fusion_bench.methods.blend._base import Blended as Blended
from fusion_bench.methods.blend._base import BlendTerms as BlendTerms
from fusion_bench.methods.blend._base import BlendWeights as BlendWeights
from fusion_bench.methods.blend._base import Fused as Fused
from fusion_bench.methods.blend._base import RerankBlend as RerankBlend
from fusion_bench.methods.blend._base import RetrievalBlend as RetrievalBlend
from fusion_bench.methods.blend._base import blends as blends
from fusion_bench.methods.blend._base import fixed_scale as fixed_scale
from fusion_bench.methods.blend._base import on_unit_scale as on_unit_scale
from fusion_bench.methods.blend._base import rank_positions as rank_positions
from fusion_bench.methods.blend._base import to_unit_scale as to_unit_scale
