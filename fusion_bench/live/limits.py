"""A system with another limit, or without its reranker."""

from __future__ import annotations

from collections.abc import Callable

from fusion_bench.blend import Blend, RerankBlend
from fusion_bench.blend.none import NoBlend
from fusion_bench.errors import ConfigError
from fusion_bench.experiment.system import System


def apply_limit(system: System, limit: int) -> System:
    """The system that returns at most so many documents.

    Unless a blend says ``always_rerank``, a query with at most so many candidates is not reranked
    (CONV-07-05).

    Args:
        system: The system.
        limit: Documents, at least 1.

    Raises:
        ConfigError: The limit is less than 1.
    """
    if isinstance(limit, bool) or not isinstance(limit, int) or limit < 1:
        raise ConfigError(f"limit: a whole number from 1 on is needed, given {limit!r}")

    def change(blend: Blend) -> Blend:
        if not isinstance(blend, RerankBlend) or blend.always_rerank:
            return blend
        return blend.model_copy(update={"skip_limit": limit})

    return _replace_blends(system, change).model_copy(update={"top_k": limit})


def without_reranking(system: System) -> System:
    """The system that keeps the fused order, its stages too."""
    changed = _replace_blends(system, lambda _: NoBlend())
    if system.policy is not None and system.policy.needs_reranker:
        changed = changed.model_copy(update={"policy": None})
    if system.stages is None:
        return changed
    stages = {name: without_reranking(stage) for name, stage in system.stages.items()}
    return changed.model_copy(update={"stages": stages})


def _replace_blends(system: System, change: Callable[[Blend], Blend]) -> System:
    """The system with its blend, and those of its query types or intents, changed."""
    changed = system.model_copy(update={"blend": change(system.blend)})
    if system.class_configs is None:
        return changed
    parts = {
        name: part.model_copy(update={"blend": change(part.blend)})
        for name, part in system.class_configs.items()
    }
    return changed.model_copy(update={system.class_field: parts})
