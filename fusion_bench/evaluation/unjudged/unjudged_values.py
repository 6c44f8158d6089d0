"""What the unjudged documents of one system could change, query by query."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.ordering import FloatArray, IntArray
from fusion_bench.data.qrels import Qrels
from fusion_bench.data.records import ScoreSpace
from fusion_bench.evaluation.ranking.fitting import fit_system
from fusion_bench.evaluation.ranking.list_positions import cut_positions
from fusion_bench.evaluation.ranking.plain_systems import plain_systems
from fusion_bench.evaluation.ranking.system_ranking import ranked_lists
from fusion_bench.experiment.system import System
from fusion_bench.measures import Measure, collect_returned, compute_measures

#: Depth at which the share of unjudged documents is stated.
UNJUDGED_DEPTH = 10


@dataclass(frozen=True, eq=False)
class UnjudgedValues:
    """One system on Q queries and M measures.

    Attributes:
        share: Shape (Q,): share of unjudged documents among the first 10 that are returned; 0
            where nothing is.
        judged_only: Shape (M, Q): values over judged documents only, of the list before ``top_k``
            cuts it: without the unjudged documents others must be able to move up.
        filled: (M,) of shape (Q,): values where an unjudged document has the mean gain of the
            system's judged documents at its rank; None = the measure has no formula for it.
    """

    share: FloatArray
    judged_only: FloatArray
    filled: tuple[FloatArray | None, ...]


@dataclass(eq=False)
class UnjudgedCollector:
    """Puts :class:`UnjudgedValues` together from the parts that rank a system's queries.

    Attributes:
        runs: All Q queries.
        measures: (M,).
        qrels: The judgments, for measures that ir_measures computes.
    """

    runs: AlignedRuns
    measures: Sequence[Measure]
    qrels: Qrels
    _share: FloatArray = field(init=False)
    _judged_only: FloatArray = field(init=False)
    _parts: list[tuple[IntArray, AlignedRuns, IntArray]] = field(default_factory=list, init=False)

    def __post_init__(self) -> None:
        self._share = np.zeros(len(self.runs.queries))
        self._judged_only = np.zeros((len(self.measures), len(self.runs.queries)))

    def add_part(
        self, index: IntArray, view: AlignedRuns, before_cut: IntArray, positions: IntArray
    ) -> None:
        """Add the lists of some queries.

        Args:
            index: Indices of the queries among the Q.
            view: Their candidates.
            before_cut: Position of each candidate before ``top_k`` cuts; 0 = not in the list.
            positions: Position in the returned list; 0 = not returned.
        """
        judged_only = [measure.with_judged_only() for measure in self.measures]
        values = compute_measures(judged_only, view, before_cut, qrels=self.qrels)
        self._judged_only[:, index] = values
        self._share[index] = unjudged_share(view, positions)
        self._parts.append((index, view, positions))

    def make_values(self) -> UnjudgedValues:
        """The values of all queries, once every part was added."""
        returned = collect_returned(self.runs, self._parts)
        filled = tuple(measure.filled_values(returned) for measure in self.measures)
        return UnjudgedValues(self._share, self._judged_only, filled)


def measure_unjudged(
    system: System,
    runs: AlignedRuns,
    measures: Sequence[Measure],
    *,
    spaces: Mapping[str, ScoreSpace],
    qrels: Qrels,
) -> UnjudgedValues:
    """What the unjudged documents of a system could change.

    Args:
        system: The system.
        runs: Aligned runs.
        measures: (M,).
        spaces: Score space of each rerank list.
        qrels: The judgments.
    """
    collector = UnjudgedCollector(runs, measures, qrels)
    for index, plain, part in plain_systems(fit_system(system, runs, spaces), runs, spaces):
        view, (before_cut, _) = ranked_lists(plain, part, spaces)
        collector.add_part(index, view, before_cut, cut_positions(before_cut, plain.top_k))
    return collector.make_values()


def unjudged_share(runs: AlignedRuns, positions: IntArray) -> FloatArray:
    """(Q,): share of unjudged documents among the first 10 returned; 0 where nothing is."""
    top = (positions >= 1) & (positions <= UNJUDGED_DEPTH)
    shown = np.bincount(runs.query_index[top], minlength=len(runs.queries))
    unknown = np.bincount(runs.query_index[top & ~runs.judged], minlength=len(runs.queries))
    return unknown / np.maximum(shown, 1)
