"""Many systems over one view: values per query, or the reason why not."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fusion_bench.batch.blend_counting import BlendCounter, has_unscored, is_relevant_enough
from fusion_bench.batch.counting import RankCounter
from fusion_bench.batch.relevant_ranks import (
    Unsupported,
    deepest_rank,
    measure_values,
    unsupported_reason,
)
from fusion_bench.batch.scoring import RankScorer
from fusion_bench.batch.sorting import Which
from fusion_bench.batch.system_plans import SystemPlan, SystemSpec, plan_system
from fusion_bench.batch.top_k import TopDocuments, top_documents
from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.ordering import FloatArray, IntArray
from fusion_bench.data.records import ScoreSpace
from fusion_bench.fuse import RankSum
from fusion_bench.measures import Measure

#: Fusions whose lists are sorted block by block together; bounds their memory.
MOST_FUSIONS: Final = 8


class BatchResult(NamedTuple):
    """What could be counted.

    Attributes:
        values: (M, Q).
        unresolved: (Q,): queries that must be ranked; their values mean nothing.
    """

    values: FloatArray
    unresolved: NDArray[np.bool_]


def evaluate_batch(
    specs: Sequence[SystemSpec],
    runs: AlignedRuns,
    measures: Sequence[Measure],
    spaces: Mapping[str, ScoreSpace] | None = None,
) -> tuple[BatchResult | Unsupported, ...]:
    """Evaluate systems of one view; the more at once, the faster each.

    Args:
        specs: (T,).
        runs: A view of the sources that take part in each of them.
        measures: (M,).
        spaces: Score space of each rerank list.

    Returns:
        For each system its values, to the last bit those of ``compute_measures`` after
        ranking the candidates wherever they are not left open, or why they must be had from there.
    """
    reason = unsupported_reason(measures)
    if reason is not None:
        return (Unsupported(reason),) * len(specs)
    results: dict[int, BatchResult | Unsupported] = {}
    sums: list[tuple[int, RankSum]] = []
    others: list[int] = []
    for trial, spec in enumerate(specs):
        # Blends and dropped scores need more of a list than the places of relevant documents.
        plain = spec.blend is None and spec.min_relevance is None
        form = spec.fusion.engine_form(runs) if plain else None
        if not isinstance(form, RankSum):
            others.append(trial)
        elif (reason := RankScorer.unsupported_reason(form)) is not None:
            results[trial] = Unsupported(reason)
        else:
            sums.append((trial, form))
    results |= _evaluate_rank_sums(sums, specs, runs, measures)
    listed = _evaluate_lists([specs[trial] for trial in others], runs, measures, spaces or {})
    results |= dict(zip(others, listed, strict=True))
    return tuple(results[trial] for trial in range(len(specs)))


def _evaluate_rank_sums(
    trials: Sequence[tuple[int, RankSum]],
    specs: Sequence[SystemSpec],
    runs: AlignedRuns,
    measures: Sequence[Measure],
) -> dict[int, BatchResult]:
    """Values of sums of terms by rank, by trial."""
    groups: dict[tuple[object, ...], list[tuple[int, RankSum]]] = {}
    for trial, form in trials:
        groups.setdefault(RankScorer.group_key(form), []).append((trial, form))
    none_left = np.zeros(len(runs.queries), dtype=bool)
    results = {}
    for members in groups.values():
        scorer = RankScorer(runs, [form for _, form in members])
        most = _deepest_limit([deepest_rank(measures, specs[trial].top_k) for trial, _ in members])
        places = _count_all(scorer, len(members), most)
        for (trial, _), placed in zip(members, places, strict=True):
            results[trial] = BatchResult(
                measure_values(runs, placed, measures, specs[trial].top_k), none_left
            )
    return results


def _deepest_limit(limits: Sequence[int | None]) -> int | None:
    return None if None in limits else max(limit for limit in limits if limit is not None)


def _count_all(scorer: RankScorer, trials: int, limit: int | None) -> Iterator[IntArray]:
    """(R,) of each trial up to the limit, a few trials at a time."""
    counter = RankCounter(scorer, limit)
    for start in range(0, trials, scorer.batch_size):
        yield from counter.count_ranks(slice(start, min(start + scorer.batch_size, trials)))


def _evaluate_lists(
    specs: Sequence[SystemSpec],
    runs: AlignedRuns,
    measures: Sequence[Measure],
    spaces: Mapping[str, ScoreSpace],
) -> tuple[BatchResult | Unsupported, ...]:
    """Systems that blend, drop or weigh scores, as :func:`evaluate_batch` takes them.

    Systems of one fusion share its sorted lists.
    """
    results: list[BatchResult | Unsupported] = [Unsupported("")] * len(specs)
    groups: dict[tuple[Which, str], list[tuple[int, SystemPlan]]] = {}
    for number, spec in enumerate(specs):
        plan = plan_system(spec, runs, spaces)
        if isinstance(plan, Unsupported):
            results[number] = plan
        else:
            key = f"{type(spec.fusion).__name__} {spec.fusion.model_dump_json()}"
            groups.setdefault((plan.which, key), []).append((number, plan))
    for members, tops in _fuse_groups(runs, groups):
        for number, plan in members:
            results[number] = _count_system(specs[number], plan, runs, tops, measures)
    return tuple(results)


def _fuse_groups(
    runs: AlignedRuns, groups: Mapping[tuple[Which, str], list[tuple[int, SystemPlan]]]
) -> Iterator[tuple[list[tuple[int, SystemPlan]], TopDocuments]]:
    """Systems of one fusion with its lists, a few fusions at a time."""
    kinds: tuple[Which, Which] = ("relevant", "all")
    for which in kinds:
        plans_by_fusion = [members for (kind, _), members in groups.items() if kind == which]
        for start in range(0, len(plans_by_fusion), MOST_FUSIONS):
            some = plans_by_fusion[start : start + MOST_FUSIONS]
            depth = max(plan.depth for members in some for _, plan in members)
            trials = [members[0][1].fusion for members in some]
            yield from zip(some, top_documents(runs, which, trials, depth), strict=True)


def _count_system(
    spec: SystemSpec,
    plan: SystemPlan,
    runs: AlignedRuns,
    tops: TopDocuments,
    measures: Sequence[Measure],
) -> BatchResult | Unsupported:
    placed = _relevant_ranks(spec, plan, runs, tops)
    if isinstance(placed, Unsupported):
        return placed
    places, open_ = placed
    by_storage = np.empty_like(places)
    by_storage[tops.lists.which] = places
    left = np.zeros(len(runs.queries), dtype=bool)
    left[tops.lists.queries[open_]] = True
    return BatchResult(measure_values(runs, by_storage, measures, spec.top_k), left)


def _relevant_ranks(
    spec: SystemSpec, plan: SystemPlan, runs: AlignedRuns, tops: TopDocuments
) -> tuple[IntArray, NDArray[np.bool_]] | Unsupported:
    """(R,) place of each relevant document, by list, and (n,) lists that stay open."""
    if plan.formula is None:
        return _ranks_above_threshold(spec, plan, runs, tops)
    blending = BlendCounter(plan.formula, plan.fusion, tops)
    if plan.formula.blend.missing == "error" and has_unscored(blending):
        return Unsupported("documents without a rerank score")
    return blending.count_ranks()


def _ranks_above_threshold(
    spec: SystemSpec, plan: SystemPlan, runs: AlignedRuns, tops: TopDocuments
) -> tuple[IntArray, NDArray[np.bool_]]:
    """Fused places, but 0 where the score is below ``min_relevance``."""
    left = np.zeros(len(tops.lists.queries), dtype=bool)
    if spec.min_relevance is None:
        return tops.relevant_ranks, left
    kept = is_relevant_enough(runs, plan.fusion, tops.lists.member, spec.min_relevance)
    left[tops.lists.owner[kept < 0]] = True
    return np.where(kept == 0, 0, tops.relevant_ranks), left
