"""A ranking of which only the relevant documents are placed: all that most measures look at."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.ordering import FloatArray, IntArray
from fusion_bench.measures import Measure
from fusion_bench.measures.ranking import Ranking, ranked_rows, relevant_candidates


@dataclass(frozen=True)
class Unsupported:
    """Why a system must go the plain way.

    Attributes:
        reason: A few words.
    """

    reason: str


def unsupported_reason(measures: Sequence[Measure]) -> str | None:
    """Why these measures need more than the places of relevant documents; None = they do not."""
    for measure in measures:
        if measure.required_ranks != "relevant" or measure.judged_only:
            return f"{measure.name} looks at more than the relevant documents"
    return None


def measure_values(
    runs: AlignedRuns, placed: IntArray, measures: Sequence[Measure], top_k: int | None
) -> FloatArray:
    """(M, Q): what ``compute_measures`` gives, to the last bit.

    Args:
        runs: The view.
        placed: (R,): places of its candidates of grade 1 or better, as stored; 0 = dropped.
        measures: (M,).
        top_k: Where the final list is cut; None = nowhere.
    """
    ranking = _RelevantRanking(runs, placed, deepest_rank(measures, top_k))
    values: FloatArray = np.zeros((len(measures), len(runs.queries)))
    for m, measure in enumerate(measures):
        values[m] = measure.compute_values(ranking)
    return values


def deepest_rank(measures: Sequence[Measure], top_k: int | None) -> int | None:
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
