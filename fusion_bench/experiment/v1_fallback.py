"""What runs where ``RAG_FUSION_V2_ENABLED`` is false: version 1 of fusion and blend."""

from __future__ import annotations

import logging
import os
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError

from fusion_bench.blend import RerankBlend
from fusion_bench.blend.position_aware import PositionAware
from fusion_bench.blend.replace import Replace
from fusion_bench.errors import ConfigError
from fusion_bench.experiment.methods.system_methods import PerTypeConfig
from fusion_bench.experiment.system import System
from fusion_bench.fuse import Fusion, fusions
from fusion_bench.fuse.rrf import RRF
from fusion_bench.fuse.rrf_v2 import RRFv2
from fusion_bench.policies import Variant

log = logging.getLogger("fusion_bench.experiment")

Config = TypeVar("Config", System, PerTypeConfig)
V2_VARIABLE = "RAG_FUSION_V2_ENABLED"


def is_v2_enabled() -> bool:
    """Value of ``RAG_FUSION_V2_ENABLED``; true if it is not set or empty.

    Raises:
        ConfigError: It is neither true nor false.
    """
    value = os.environ.get(V2_VARIABLE, "").strip()
    try:
        return TypeAdapter(bool).validate_python(value or "true")
    except ValidationError:
        raise ConfigError(
            f"{V2_VARIABLE}: {value!r} is neither true (1, true, yes, on) nor false (0, false, "
            "no, off)"
        ) from None


def apply_switch(system: System) -> System:
    """A system that stands in no experiment as ``RAG_FUSION_V2_ENABLED`` has it, which is logged.

    Raises:
        ConfigError: The variable is neither true nor false.
    """
    changed = system if is_v2_enabled() else replace_v2(system)
    if changed != system:
        log.warning("%s is off: system %r runs as version 1", V2_VARIABLE, system.name)
    return changed


def replace_v2(config: Config) -> Config:
    """A configuration with ``rrf`` for ``rrf_v2`` and ``replace`` for ``position_aware``.

    Its stages, and the fusions that its policy chooses, too. The fusion keeps k and its
    normalization, and loses its weights and its bonus. The blend keeps what every blend with a
    reranker has. A system of the dialect ``qmd``, which has no such switch, stays as it is.
    """
    if isinstance(config, System) and config.dialect == "qmd":
        return config
    changed: dict[str, Any] = {"fusion": _v1_of(config.fusion)}
    if isinstance(config.blend, PositionAware):
        shared = set(RerankBlend.model_fields) - {"method"}
        changed["blend"] = Replace(**config.blend.model_dump(include=shared))
    if isinstance(config, System) and config.class_configs is not None:
        by_class = config.class_configs.items()
        changed[config.class_field] = {name: replace_v2(part) for name, part in by_class}
    if isinstance(config, System) and config.stages is not None:
        changed["stages"] = {name: replace_v2(stage) for name, stage in config.stages.items()}
    if isinstance(config, System) and config.policy is not None:
        variants = {name: value for name, value in config.policy if isinstance(value, Variant)}
        plain = {name: _replace_in_variant(variant) for name, variant in variants.items()}
        changed["policy"] = config.policy.model_copy(update=plain)
    return config.model_copy(update=changed)


def _v1_of(fusion: Fusion) -> Fusion:
    return RRF(k=fusion.k, normalize=fusion.normalize) if isinstance(fusion, RRFv2) else fusion


def _replace_in_variant(variant: Variant) -> Variant:
    if variant.fusion is None or not isinstance(fusions.build(variant.fusion), RRFv2):
        return variant
    plain = _v1_of(fusions.build(variant.fusion)).model_dump()
    return variant.model_copy(update={"fusion": plain, "weights": None})
