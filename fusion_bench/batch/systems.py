"""Many systems over one view: values per query, or the reason why not."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from fusion_bench.batch.blend_counting import BlendCounter, is_relevant_enough
from fusion_bench.batch.counting import count_ranks
from fusion_bench.batch.limits import BatchLimits
from fusion_bench.batch.native import LANES
from fusion_bench.batch.scoring import RankScorer
from fusion_bench.batch.sorting import Which
from fusion_bench.batch.system_plans import SystemPlan, SystemSpec, Unsupported, plan_system
from fusion_bench.batch.top_k import TopDocuments, top_documents
from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.ordering import BoolArray, FloatArray, IntArray
from fusion_bench.data.records import ScoreSpace
from fusion_bench.fuse import RankSum
from fusion_bench.measures import Measure
from fusion_bench.measures.rankings.ranking import Ranking, ranked_rows, relevant_candidates


class BatchResult(NamedTuple):
    """What could be counted.

    Attributes:
        values: (M, Q).
        unresolved: (Q,): queries that must be ranked; their values mean nothing.
    """

    values: FloatArray
    unresolved: BoolArray


def evaluate_batch(
    specs: Sequence[SystemSpec],
    runs: AlignedRuns,
    measures: Sequence[Measure],
    spaces: Mapping[str, ScoreSpace] | None = None,
    limits: BatchLimits | None = None,
) -> tuple[BatchResult | Unsupported, ...]:
    """Evaluate systems of one view; the more at once, the faster each.

    Args:
        specs: (T,).
        runs: A view of the sources that take part in each of them.
        measures: (M,).
        spaces: Score space of each rerank list.
        limits: Of time and memory; None = the defaults. They change no value.

    Returns:
        For each system its values, to the last bit those of ``compute_measures`` after
        ranking the candidates wherever they are not left open, or why they must be had from there.
    """
    limits = limits or BatchLimits()
    reason = _unsupported_reason(measures)
    if reason is not None:
        return (Unsupported(reason),) * len(specs)
    results: dict[int, BatchResult | Unsupported] = {}
    sums: dict[tuple[object, ...], list[tuple[int, RankSum]]] = {}
    others: dict[tuple[Which, str], list[tuple[int, SystemPlan]]] = {}
    for number, spec in enumerate(specs):
        plan = plan_system(spec, runs, spaces or {}, limits)
        if isinstance(plan, Unsupported):
            results[number] = plan
        # Blends and dropped scores need more of a list than the places of relevant documents.
        elif isinstance(plan.fusion, RankSum) and spec.blend is None and spec.min_relevance is None:
            sums.setdefault(RankScorer.group_key(plan.fusion), []).append((number, plan.fusion))
        else:
            key = f"{type(spec.fusion).__name__} {spec.fusion.model_dump_json()}"
            others.setdefault((plan.which, key), []).append((number, plan))
    for number, placed in _count_rank_sums(list(sums.values()), specs, runs, measures, limits):
        values = _measure_values(runs, placed, measures, specs[number].top_k)
        results[number] = BatchResult(values, np.zeros(len(runs.queries), dtype=bool))
    for plans, tops in _fuse_groups(runs, others, limits):
        for number, plan in plans:
            results[number] = _count_system(specs[number], plan, tops, measures)
    return tuple(results[number] for number in range(len(specs)))


def _count_rank_sums(
    groups: Sequence[Sequence[tuple[int, RankSum]]],
    specs: Sequence[SystemSpec],
    runs: AlignedRuns,
    measures: Sequence[Measure],
    limits: BatchLimits,
) -> Iterator[tuple[int, IntArray]]:
    """(R,) places of each sum of terms by rank, up to the last one that matters."""
    for members in groups:
        numbers, forms = zip(*members, strict=True)
        scorer = RankScorer(runs, forms, limits)
        depths = [_deepest_rank(measures, specs[number].top_k) for number in numbers]
        deepest = None if None in depths else max(depth or 0 for depth in depths)
        for start in range(0, len(members), LANES):
            lanes = slice(start, min(start + LANES, len(members)))
            yield from zip(numbers[lanes], count_ranks(scorer, lanes, deepest), strict=True)


def _fuse_groups(
    runs: AlignedRuns,
    groups: Mapping[tuple[Which, str], list[tuple[int, SystemPlan]]],
    limits: BatchLimits,
) -> Iterator[tuple[list[tuple[int, SystemPlan]], TopDocuments]]:
    """Systems of one fusion with its lists, a few fusions at a time."""
    kinds: tuple[Which, Which] = ("relevant", "all")
    for which in kinds:
        plans_by_fusion = [members for (kind, _), members in groups.items() if kind == which]
        for start in range(0, len(plans_by_fusion), limits.fusions):
            some = plans_by_fusion[start : start + limits.fusions]
            depth = max(plan.depth for members in some for _, plan in members)
            trials = [members[0][1].fusion for members in some]
            yield from zip(some, top_documents(runs, which, trials, depth, limits), strict=True)


def _count_system(
    spec: SystemSpec, plan: SystemPlan, tops: TopDocuments, measures: Sequence[Measure]
) -> BatchResult | Unsupported:
    lists, places = tops.lists, tops.relevant_ranks
    is_open = np.zeros(len(lists.queries), dtype=bool)
    if plan.formula is not None:
        blending = BlendCounter(plan.formula, tops)
        if plan.formula.blend.missing == "error" and blending.has_unscored():
            return Unsupported("documents without a rerank score")
        places, is_open = blending.count_ranks()
    elif spec.min_relevance is not None:
        kept = is_relevant_enough(tops, lists.member, spec.min_relevance)
        is_open[lists.owner[kept < 0]] = True
        places = np.where(kept == 0, 0, places)
    by_storage = np.empty_like(places)
    by_storage[lists.which] = places
    left = np.zeros(len(tops.runs.queries), dtype=bool)
    left[lists.queries[is_open]] = True
    return BatchResult(_measure_values(tops.runs, by_storage, measures, spec.top_k), left)


def _unsupported_reason(measures: Sequence[Measure]) -> str | None:
    """Why these measures need more than the places of relevant documents; None = they do not."""
    for measure in measures:
        if measure.required_ranks != "relevant" or measure.judged_only:
            return f"{measure.name} looks at more than the relevant documents"
    return None


def _measure_values(
    runs: AlignedRuns, placed: IntArray, measures: Sequence[Measure], top_k: int | None
) -> FloatArray:
    """(M, Q): what ``compute_measures`` gives, to the last bit.

    Args:
        runs: The view.
        placed: (R,): places of its candidates of grade 1 or better, as stored; 0 = dropped.
        measures: (M,).
        top_k: Where the final list is cut; None = nowhere.
    """
    ranking = _RelevantRanking(runs, placed, _deepest_rank(measures, top_k))
    values: FloatArray = np.zeros((len(measures), len(runs.queries)))
    for m, measure in enumerate(measures):
        values[m] = measure.compute_values(ranking)
    return values


def _deepest_rank(measures: Sequence[Measure], top_k: int | None) -> int | None:
    """The last place that matters; None = all do."""
    limits = [cut for cut in (measure.cutoff for measure in measures) if cut is not None]
    cuts = [top_k, max(limits, default=0) if len(limits) == len(measures) else None]
    return min((cut for cut in cuts if cut is not None), default=None)


class _RelevantRanking(Ranking):
    """A ranking of which only the (R,) relevant documents up to a limit are placed."""

    def __init__(self, runs: AlignedRuns, placed: IntArray, limit: int | None) -> None:
        super().__init__(runs, placed, judged_only=False)
        kept = placed if limit is None else np.where(placed > limit, 0, placed)
        self._relevant[1] = ranked_rows(runs, relevant_candidates(runs), kept)
