"""A ranking of which only the relevant documents are placed: all that most measures look at."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.ordering import FloatArray, IntArray
from fusion_bench.data.view_cache import cached_by_view
from fusion_bench.measures import Measure
from fusion_bench.measures.ranking import BoolArray, Ranking, Rows


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
    ranking = RelevantRanking(runs, placed, deepest_rank(measures, top_k))
    values: FloatArray = np.zeros((len(measures), len(runs.queries)))
    for m, measure in enumerate(measures):
        values[m] = measure.compute_values(ranking)
    return values


def deepest_rank(measures: Sequence[Measure], top_k: int | None) -> int | None:
    """The last place that matters; None = all do."""
    limits = [cut for cut in (measure.cutoff for measure in measures) if cut is not None]
    cuts = [top_k, max(limits, default=0) if len(limits) == len(measures) else None]
    return min((cut for cut in cuts if cut is not None), default=None)


class _RelevantCandidates(NamedTuple):
    """The relevant candidates of a view, as stored.

    Attributes:
        query: (R,).
        grade: (R,).
    """

    query: IntArray
    grade: IntArray


@cached_by_view()
def _relevant_candidates(runs: AlignedRuns) -> _RelevantCandidates:
    index = np.flatnonzero(runs.grades > 0)
    return _RelevantCandidates(runs.query_index[index], runs.grades[index])


@dataclass(frozen=True, eq=False)
class _CachedRows(Rows):
    """Rows that remember their tops: most measures of a system share a cutoff."""

    tops: dict[int, Rows] = field(default_factory=dict)

    def where(self, keep: BoolArray) -> Rows:
        """Only the rows where ``keep``, shape (m,), is true."""
        index = np.flatnonzero(keep)
        return _CachedRows(self.query[index], self.position[index], self.grade[index])

    def top(self, cutoff: int | None) -> Rows:
        """Only the rows at the first ``cutoff`` positions; None = all."""
        if cutoff is None:
            return self
        if cutoff not in self.tops:
            self.tops[cutoff] = self.where(self.position <= cutoff)
        return self.tops[cutoff]


class RelevantRanking(Ranking):
    """A ranking of which only the relevant documents are placed.

    Args:
        runs: The candidates.
        placed: (R,): places of those of grade 1 or better, as stored; 0 = not returned.
        limit: What stands further down is of no interest; None = nothing is.
    """

    def __init__(self, runs: AlignedRuns, placed: IntArray, limit: int | None) -> None:
        super().__init__(runs, placed, judged_only=False)
        given = _relevant_candidates(runs)
        kept = placed > 0
        if limit is not None:
            kept &= placed <= limit
        index = np.flatnonzero(kept)
        query, placed = given.query[index], placed[index]
        # A place never exceeds the number of candidates, so these numbers are distinct.
        order = np.argsort(runs.offsets[query] + placed)
        self._all = _CachedRows(query, placed[order], given.grade[index][order])

    def relevant(self, rel: int) -> Rows:
        """The returned documents of grade ``rel`` or better."""
        if rel == 1:
            return self._all
        if rel not in self._relevant:
            self._relevant[rel] = self._all.where(self._all.grade >= rel)
        return self._relevant[rel]
