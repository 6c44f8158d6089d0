"""What runs where ``RAG_FUSION_V2_ENABLED`` is false: version 1 of fusion and blend."""

from __future__ import annotations

import os
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError

from fusion_bench.blend import RerankBlend
from fusion_bench.blend.position_aware import PositionAware
from fusion_bench.blend.replace import Replace
from fusion_bench.errors import ConfigError
from fusion_bench.experiment.methods.system_methods import PerTypeConfig
from fusion_bench.experiment.system import System
from fusion_bench.fuse.rrf import RRF
from fusion_bench.fuse.rrf_v2 import RRFv2

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


def replace_v2(config: Config) -> Config:
    """A configuration with ``rrf`` for ``rrf_v2`` and ``replace`` for ``position_aware``.

    The fusion keeps k and its normalization, and loses its weights and its bonus. The blend keeps
    what every blend with a reranker has. A system of the dialect ``qmd``, which has no such
    switch, stays as it is.
    """
    if isinstance(config, System) and config.dialect == "qmd":
        return config
    changed: dict[str, Any] = {}
    if isinstance(config.fusion, RRFv2):
        changed["fusion"] = RRF(k=config.fusion.k, normalize=config.fusion.normalize)
    if isinstance(config.blend, PositionAware):
        shared = set(RerankBlend.model_fields) - {"method"}
        changed["blend"] = Replace(**config.blend.model_dump(include=shared))
    if isinstance(config, System) and config.class_configs is not None:
        by_class = config.class_configs.items()
        changed[config.class_field] = {name: replace_v2(part) for name, part in by_class}
    return config.model_copy(update=changed)
