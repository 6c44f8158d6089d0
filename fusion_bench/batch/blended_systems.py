"""Many systems over one view that blend, drop or weigh scores: values, or the reason why not."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fusion_bench.batch.blend_counting import Blending, kept_places, lacks_scores, unscored_by_query
from fusion_bench.batch.relevant_ranks import Refusal, values
from fusion_bench.batch.sorting import Which, refusal
from fusion_bench.batch.top_k import Tops, all_tops
from fusion_bench.blend import Blend, Mixture, RerankBlend
from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.ordering import FloatArray, IntArray
from fusion_bench.data.records import ScoreSpace
from fusion_bench.fuse import Compiled, Fusion
from fusion_bench.measures import Measure

__all__ = ["Asked", "Counted", "evaluate_blends"]

#: Fusions whose lists are sorted block by block together; bounds their memory.
MOST_FUSIONS: Final = 8


class Asked(NamedTuple):
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


class Counted(NamedTuple):
    """What could be counted.

    Attributes:
        values: (M, Q).
        left: (Q,): queries that must be ranked; their values mean nothing.
    """

    values: FloatArray
    left: NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class _Plan:
    """How one system goes through: what to fuse, how deep, and what to blend."""

    trial: Compiled
    which: Which
    depth: int
    mixture: Mixture | None


def evaluate_blends(
    asked: Sequence[Asked],
    runs: AlignedRuns,
    measures: Sequence[Measure],
    spaces: Mapping[str, ScoreSpace],
) -> tuple[Counted | Refusal, ...]:
    """Evaluate systems of one view whose measures can be counted; those of one fusion share lists.

    Arguments and result as for :func:`fusion_bench.batch.evaluate`, which asks for them.
    """
    found: list[Counted | Refusal] = [Refusal("")] * len(asked)
    groups: dict[tuple[Which, str], list[tuple[int, _Plan]]] = {}
    for number, one in enumerate(asked):
        plan = _plan(one, runs, spaces)
        if isinstance(plan, Refusal):
            found[number] = plan
        else:
            key = f"{type(one.fusion).__name__} {one.fusion.model_dump_json()}"
            groups.setdefault((plan.which, key), []).append((number, plan))
    for members, tops in _with_tops(runs, groups):
        for number, plan in members:
            found[number] = _counted(asked[number], plan, runs, tops, measures, spaces)
    return tuple(found)


def _with_tops(
    runs: AlignedRuns, groups: Mapping[tuple[Which, str], list[tuple[int, _Plan]]]
) -> Iterator[tuple[list[tuple[int, _Plan]], Tops]]:
    """Systems of one fusion with its lists, a few fusions at a time."""
    kinds: tuple[Which, Which] = ("relevant", "all")
    for which in kinds:
        mine = [members for (kind, _), members in groups.items() if kind == which]
        for start in range(0, len(mine), MOST_FUSIONS):
            some = mine[start : start + MOST_FUSIONS]
            depth = max(plan.depth for members in some for _, plan in members)
            trials = [members[0][1].trial for members in some]
            yield from zip(some, all_tops(runs, which, trials, depth), strict=True)


def _plan(one: Asked, runs: AlignedRuns, spaces: Mapping[str, ScoreSpace]) -> _Plan | Refusal:
    trial = one.fusion.compiled(runs)
    if trial is None:
        return Refusal(f"{one.fusion.method} has no form that can be counted")
    reason = refusal(runs, trial)
    if reason is not None:
        return Refusal(reason)
    if one.blend is None:
        return _Plan(trial, "relevant", 0, None)
    if not isinstance(one.blend, RerankBlend):
        return Refusal(f"{one.blend.method} has no form that can be counted")
    return _rerank_plan(one.blend, trial, one.fusion, runs, spaces)


def _rerank_plan(
    blend: RerankBlend,
    trial: Compiled,
    fusion: Fusion,
    runs: AlignedRuns,
    spaces: Mapping[str, ScoreSpace],
) -> _Plan | Refusal:
    depth = min(blend.depth, int(np.diff(runs.offsets).max(initial=0)))
    mixture = blend.compiled(depth)
    if mixture is None:
        return Refusal(f"{blend.method} has no form that can be counted")
    if blend.reranker not in runs.rerankers or blend.reranker not in spaces:
        return Refusal(f"no rerank list {blend.reranker!r} with a score space")
    if mixture.retrieval == "fused_max_possible":
        greatest = fusion.max_possible(runs)[np.diff(runs.offsets) > 0]
        if (greatest <= 0).any():
            return Refusal("a greatest possible score that is not above 0")
    which: Which = "relevant"
    if blend.missing == "error":
        unscored = unscored_by_query(runs, runs.rerankers.index(blend.reranker))
        which = "all" if unscored.any() else which
    return _Plan(trial, which, depth, mixture)


def _counted(
    one: Asked,
    plan: _Plan,
    runs: AlignedRuns,
    tops: Tops,
    measures: Sequence[Measure],
    spaces: Mapping[str, ScoreSpace],
) -> Counted | Refusal:
    placed = _placed(one, plan, runs, tops, spaces)
    if isinstance(placed, Refusal):
        return placed
    places, open_ = placed
    by_storage = np.empty_like(places)
    by_storage[tops.lists.which] = places
    left = np.zeros(len(runs.queries), dtype=bool)
    left[tops.lists.queries[open_]] = True
    return Counted(values(runs, by_storage, measures, one.top_k), left)


def _placed(
    one: Asked, plan: _Plan, runs: AlignedRuns, tops: Tops, spaces: Mapping[str, ScoreSpace]
) -> tuple[IntArray, NDArray[np.bool_]] | Refusal:
    """(R,) place of each relevant document, by list, and (n,) lists that stay open."""
    if plan.mixture is None or not isinstance(one.blend, RerankBlend):
        return _cut_off(one, plan, runs, tops)
    greatest = None
    if plan.mixture.retrieval == "fused_max_possible":
        greatest = one.fusion.max_possible(runs)
    blending = Blending(
        runs,
        plan.trial,
        tops,
        one.blend,
        plan.mixture,
        spaces[one.blend.reranker],
        one.min_relevance,
        greatest,
    )
    if one.blend.missing == "error" and lacks_scores(blending):
        return Refusal("documents without a rerank score")
    return blending.places()


def _cut_off(
    one: Asked, plan: _Plan, runs: AlignedRuns, tops: Tops
) -> tuple[IntArray, NDArray[np.bool_]]:
    """Fused places, but 0 where the score is below ``min_relevance``."""
    left = np.zeros(len(tops.lists.queries), dtype=bool)
    if one.min_relevance is None:
        return tops.places, left
    kept = kept_places(runs, plan.trial, tops.lists.member, one.min_relevance)
    left[tops.lists.owner[kept < 0]] = True
    return np.where(kept == 0, 0, tops.places), left
