"""Rerank blends: one file each, found by name."""

from fusion_bench.methods.blend.formulas import Blend as Blend
from fusion_bench.methods.blend.formulas import Blended as Blended
from fusion_bench.methods.blend.formulas import BlendTerms as BlendTerms
from fusion_bench.methods.blend.formulas import BlendWeights as BlendWeights
from fusion_bench.methods.blend.formulas import Fused as Fused
from fusion_bench.methods.blend.formulas import RerankBlend as RerankBlend
from fusion_bench.methods.blend.formulas import RetrievalBlend as RetrievalBlend
from fusion_bench.methods.blend.formulas import blends as blends
from fusion_bench.methods.blend.formulas import fixed_scale as fixed_scale
from fusion_bench.methods.blend.formulas import level_equal_scores as level_equal_scores
from fusion_bench.methods.blend.formulas import on_unit_scale as on_unit_scale
from fusion_bench.methods.blend.formulas import to_unit_scale as to_unit_scale
