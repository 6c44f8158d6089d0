"""The least or greatest value of a system that any completion of the judgments gives."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache, partial
from typing import Final

import numpy as np

from fusion_bench.checks.completed_measures import build_model, has_model
from fusion_bench.checks.completions import (
    Ends,
    ListCounts,
    ListParts,
    TopCandidates,
    collect_list,
    count_list,
    find_counted_ends,
    find_list_ends,
)
from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.qrels import Qrels
from fusion_bench.experiment.system import System
from fusion_bench.measures import Measure
from fusion_bench.measures.rankings import divide_or_zero
from fusion_bench.ranking.final_lists import list_parts
from fusion_bench.ranking.plain_systems import fit_repeats
from fusion_bench.ranking.system_scores import query_blocks
from fusion_bench.stats.repeat_variance import mean_of_repeats
from fusion_bench.stats.unjudged import QueryBounds

#: Depth of Judged where the measure has no cutoff.
JUDGED_DEPTH: Final = 10
#: Grades that are tried; where there are more, only those of the judgments are.
MOST_GRADES: Final = 20


def grade_scale(qrels: Qrels | None) -> Sequence[int]:
    """The grades that a judge may give: 0 to the greatest of the judgments, at least 0 and 1."""
    grades = np.zeros(0, dtype=np.int64) if qrels is None else qrels.grades
    greatest = int(grades.max(initial=1))
    if greatest > MOST_GRADES:
        return [0, *np.unique(grades[grades > 0]).tolist()]
    return range(max(greatest, 1) + 1)


def find_bounds(
    measures: Sequence[Measure],
    runs: AlignedRuns,
    parts: ListParts,
    *,
    is_complete: bool | None = None,
) -> tuple[QueryBounds | None, ...]:
    """The bounds of one system.

    Args:
        measures: (M,).
        runs: All Q queries.
        parts: The system's lists.
        is_complete: Whether every candidate is judged; None = of these queries.

    Returns:
        (M,); None = the judgments are complete.
    """
    if runs.is_complete if is_complete is None else is_complete:
        return (None,) * len(measures)
    lists = [*parts]
    count = cache(lambda depth: count_list(runs, lists, cutoff=depth))
    collect = cache(lambda depth: collect_list(runs, lists, cutoff=depth))
    bounds = []
    for measure in measures:
        shown = measure.cutoff or JUDGED_DEPTH
        depth = measure.cutoff if has_model(measure) else shown  # None = all positions count
        ends = _find_ends(measure, count(depth), partial(collect, depth))
        counts = count(shown)
        bounds.append(QueryBounds(divide_or_zero(counts.judged, counts.shown), ends, shown))
    return tuple(bounds)


def join_bounds(blocks: Sequence[Sequence[QueryBounds | None]]) -> tuple[QueryBounds | None, ...]:
    """The bounds of one system for all queries, from those for some queries each, in their order.

    Args:
        blocks: (B,) of (M,).
    """
    joined: list[QueryBounds | None] = []
    for bounds in zip(*blocks, strict=True):
        known = [each for each in bounds if each is not None]
        ends = [each.ends for each in known if each.ends is not None]
        low_high = [np.concatenate(side) for side in zip(*ends, strict=True)]
        joined.append(
            replace(
                known[0],
                judged=np.concatenate([each.judged for each in known]),
                ends=(low_high[0], low_high[1]) if len(ends) == len(bounds) else None,
            )
            if known
            else None
        )
    return tuple(joined)


def _find_ends(
    measure: Measure, counts: ListCounts, collect: Callable[[], TopCandidates]
) -> Ends | None:
    """The least and greatest values; None = completions are not known."""
    if not has_model(measure):
        return None
    if (ends := find_counted_ends(measure, counts)) is not None:
        return ends
    top = collect()
    if (ends := find_list_ends(measure, top)) is not None:
        return ends
    model = build_model(measure, top, sorted({*grade_scale(top.runs.qrels), 1}))
    if model is None:
        return None
    extremes = model.find_extremes()
    return extremes.low, extremes.high


def find_system_bounds(
    system: System,
    runs: AlignedRuns,
    measures: Sequence[Measure],
    *,
    training: AlignedRuns | None = None,
) -> tuple[QueryBounds | None, ...]:
    """The bounds of a system, as means over its repeats.

    Args:
        system: The system.
        runs: Aligned runs.
        measures: (M,).
        training: The queries that trained fusions learn from; None = the evaluated ones.

    Returns:
        (M,); None = the judgments are complete.
    """
    if runs.is_complete:  # nothing needs to be ranked
        return (None,) * len(measures)
    return mean_bounds(
        [
            join_bounds(
                [
                    find_bounds(measures, part, list_parts(each, part), is_complete=False)
                    for _, part in query_blocks(lists, measures)
                ]
            )
            for each, lists in fit_repeats(system, runs, training)
        ]
    )


def mean_bounds(repeats: Sequence[Sequence[QueryBounds | None]]) -> tuple[QueryBounds | None, ...]:
    """The means over repeats, measure by measure; None where it is not known of one of them.

    No completion gives the mean over repeats a value beyond them.

    Args:
        repeats: (T,) of (M,).
    """
    means: list[QueryBounds | None] = []
    for bounds in zip(*repeats, strict=True):
        known = [each for each in bounds if each is not None]
        if len(known) < len(bounds):
            means.append(None)
            continue
        judged = mean_of_repeats([each.judged for each in known])
        ends = [each.ends for each in known if each.ends is not None]
        mean_ends = None
        if len(ends) == len(known):
            low, high = map(mean_of_repeats, zip(*ends, strict=True))
            mean_ends = low, high
        means.append(QueryBounds(judged, mean_ends, known[0].depth))
    return tuple(means)
