"""What the batch engine is asked to evaluate, and how it goes about it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from fusion_bench.batch.blend_counting import unscored_by_query
from fusion_bench.batch.blend_terms import BlendFormula
from fusion_bench.batch.limits import BatchLimits
from fusion_bench.batch.quantized_scores import unsupported_reason
from fusion_bench.batch.sorting import Which
from fusion_bench.blend import Blend, RerankBlend
from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.records import ScoreSpace
from fusion_bench.fuse import EngineForm, Fusion


@dataclass(frozen=True)
class Unsupported:
    """Why a system must go the plain way.

    Attributes:
        reason: A few words.
    """

    reason: str


class SystemSpec(NamedTuple):
    """A plain system without its sources.

    Attributes:
        fusion: How it fuses.
        blend: Its blend; None = none.
        min_relevance: As a system has it.
        top_k: As a system has it.
    """

    fusion: Fusion
    blend: Blend | None = None
    min_relevance: float | None = None
    top_k: int | None = None


@dataclass(frozen=True, eq=False)
class SystemPlan:
    """How one system is evaluated.

    Attributes:
        fusion: The compiled fusion.
        which: The lists that must be sorted.
        depth: Fused documents that the blend reads.
        formula: The blend; None = none.
    """

    fusion: EngineForm
    which: Which
    depth: int
    formula: BlendFormula | None


def plan_system(
    spec: SystemSpec, runs: AlignedRuns, spaces: Mapping[str, ScoreSpace], limits: BatchLimits
) -> SystemPlan | Unsupported:
    """How to evaluate a system of one view, or why the batch engine cannot."""
    fusion = spec.fusion.engine_form(runs)
    if fusion is None:
        return Unsupported(f"{spec.fusion.method} has no form that can be counted")
    reason = unsupported_reason(runs, fusion, limits)
    if reason is not None:
        return Unsupported(reason)
    if spec.blend is None:
        return SystemPlan(fusion, "relevant", 0, None)
    if not isinstance(spec.blend, RerankBlend):
        return Unsupported(f"{spec.blend.method} has no form that can be counted")
    return _rerank_plan(spec, spec.blend, fusion, runs, spaces)


def _rerank_plan(
    spec: SystemSpec,
    blend: RerankBlend,
    fusion: EngineForm,
    runs: AlignedRuns,
    spaces: Mapping[str, ScoreSpace],
) -> SystemPlan | Unsupported:
    depth = min(blend.depth, int(np.diff(runs.offsets).max(initial=0)))
    mixture = blend.engine_form(depth)
    if mixture is None:
        return Unsupported(f"{blend.method} has no form that can be counted")
    if blend.reranker not in runs.rerankers or blend.reranker not in spaces:
        return Unsupported(f"no rerank list {blend.reranker!r} with a score space")
    greatest = None
    if mixture.retrieval == "fused_max_possible":
        greatest = spec.fusion.max_possible(runs)
        some = greatest[np.diff(runs.offsets) > 0]
        if not ((some > 0) & (some < np.inf)).all():
            return Unsupported("a greatest possible score that is not above 0, or not known")
    which: Which = "relevant"
    if blend.missing == "error":
        unscored = unscored_by_query(runs, runs.rerankers.index(blend.reranker))
        which = "all" if unscored.any() else which
    space = spaces[blend.reranker]
    formula = BlendFormula(runs, blend, mixture, space, spec.min_relevance, greatest)
    return SystemPlan(fusion, which, depth, formula)
