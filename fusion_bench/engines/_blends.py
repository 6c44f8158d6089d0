"""Rerank blends that are part of a dialect."""

from __future__ import annotations

from collections.abc import Set as AbstractSet

from fusion_bench.blend import RerankBlend
from fusion_bench.engines._translation import Draft


def fit_blend(draft: Draft, writable: AbstractSet[str]) -> None:
    """Set what the engine cannot say about the draft's blend to what it does.

    Args:
        draft: Its blend is replaced.
        writable: Fields of the blend that the engine's configuration can say.
    """
    given = draft.blend
    if not isinstance(given, RerankBlend):
        return
    defaults = draft.dialect.blend_defaults
    fixed = defaults if defaults.get("method") == given.method else {}
    kept = {name: getattr(given, name) for name in {*writable, "reranker"}}
    draft.blend = type(given).model_validate({**fixed, "method": given.method, **kept})
    for name in type(given).model_fields:
        before, after = getattr(given, name), getattr(draft.blend, name)
        if before != after:
            draft.lose(f"blend.{name}: {after} instead of {before}")
