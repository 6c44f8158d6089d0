"""What runs where ``RAG_FUSION_V2_ENABLED`` is false: version 1 of fusion and blend."""

from __future__ import annotations

from fusion_bench.blend import Blend, RerankBlend
from fusion_bench.blend.position_aware import PositionAware
from fusion_bench.blend.replace import Replace
from fusion_bench.experiment.system import PerTypeConfig, System
from fusion_bench.fuse import Fusion
from fusion_bench.fuse.rrf import RRF
from fusion_bench.fuse.rrf_v2 import RRFv2


def replace_v2(system: System) -> System:
    """The system with ``rrf`` for ``rrf_v2`` and ``replace`` for ``position_aware``.

    The fusion keeps k and its normalization, and loses its weights and its bonus. The blend keeps
    what every blend with a reranker has.
    """
    by_type = system.by_query_type
    if by_type is not None:
        by_type = {
            name: PerTypeConfig(fusion=_v1_fusion(config.fusion), blend=_v1_blend(config.blend))
            for name, config in by_type.items()
        }
    return system.model_copy(
        update={
            "fusion": _v1_fusion(system.fusion),
            "blend": _v1_blend(system.blend),
            "by_query_type": by_type,
        }
    )


def _v1_fusion(fusion: Fusion) -> Fusion:
    if isinstance(fusion, RRFv2):
        return RRF(k=fusion.k, normalize=fusion.normalize)
    return fusion


def _v1_blend(blend: Blend) -> Blend:
    if isinstance(blend, PositionAware):
        shared = set(RerankBlend.model_fields) - {"method"}
        return Replace(**blend.model_dump(include=shared))
    return blend
