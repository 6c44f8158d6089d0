"""Rerank blends that are part of a dialect."""

from __future__ import annotations

from collections.abc import Set as AbstractSet

from fusion_bench.blend import Blend, RerankBlend
from fusion_bench.engines._dialects.translation import Draft
from fusion_bench.errors import ConfigError
from fusion_bench.experiment.dialect import Dialect
from fusion_bench.experiment.system import System


def fit_blend(draft: Draft, writable: AbstractSet[str]) -> None:
    """Set what the engine cannot say about the draft's blend to what it does.

    Args:
        draft: Its blend is replaced.
        writable: Fields of the blend that the engine's configuration can say.
    """
    given = draft.blend
    draft.blend = _nearest_blend(draft.dialect, given, writable)
    for name in type(given).model_fields:
        before, after = getattr(given, name), getattr(draft.blend, name)
        if before != after:
            draft.lose(f"blend.{name}: {after} instead of {before}")


def check_blend(dialect: type[Dialect], system: System, writable: AbstractSet[str]) -> None:
    """Refuse a blend that the engine's configuration cannot say.

    Raises:
        ConfigError: Fields beside the writable ones are not as the engine has them.
    """
    if system.blend != _nearest_blend(dialect, system.blend, writable):
        raise ConfigError(
            f"system {system.name!r}: blend cannot be written for {dialect.title} as it is: "
            "translate it first"
        )


def _nearest_blend(dialect: type[Dialect], given: Blend, writable: AbstractSet[str]) -> Blend:
    if not isinstance(given, RerankBlend):
        return given
    defaults = dialect.blend_defaults
    fixed = defaults if defaults.get("method") == given.method else {}
    kept = {name: getattr(given, name) for name in {*writable, "reranker"}}
    return type(given).model_validate({**fixed, "method": given.method, **kept})
