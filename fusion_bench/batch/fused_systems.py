"""Many systems of one view: values per query, or the reason why not."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from fusion_bench.batch.blended_systems import BatchResult, evaluate_blends
from fusion_bench.batch.counting import RankCounter
from fusion_bench.batch.relevant_ranks import (
    Unsupported,
    deepest_rank,
    measure_values,
    unsupported_reason,
)
from fusion_bench.batch.scoring import RankScorer
from fusion_bench.batch.system_plans import SystemSpec
from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.ordering import IntArray
from fusion_bench.data.records import ScoreSpace
from fusion_bench.fuse import RankSum
from fusion_bench.measures import Measure

__all__ = ["evaluate_batch"]


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
        ``evaluate.rank`` wherever they are not left open, or why they must be had from there.
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
    listed = evaluate_blends([specs[trial] for trial in others], runs, measures, spaces or {})
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
