"""What each source or more depth adds: systems without one source, values by depth."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Final

import numpy as np

from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.ordering import FloatArray, IntArray
from fusion_bench.data.records import Switch
from fusion_bench.errors import FusionBenchError
from fusion_bench.evaluation.details.relevant_ranks import PlainTable
from fusion_bench.experiment.system import System
from fusion_bench.measures import Measure
from fusion_bench.measures._base import is_bounded
from fusion_bench.ranking.system_scores import evaluate_systems
from fusion_bench.stats.comparison import paired_difference
from fusion_bench.stats.intervals import MeanEstimate, estimate_mean, exact_mean
from fusion_bench.util.formatting import Columns, list_columns, pluralize


def estimate_difference(
    measure: str, values: FloatArray, others: FloatArray, groups: IntArray, *, alpha: float
) -> MeanEstimate:
    """The mean of ``values - others`` with its t interval, not adjusted for further comparisons.

    The interval of a measure in [0, 1] stays within ±1.

    Args:
        measure: Its name.
        values: Shape (Q,): one system.
        others: Shape (Q,): the other one.
        groups: Shape (Q,): codes of the groups.
        alpha: 1 − coverage.
    """
    estimate = estimate_mean(paired_difference(values, others), groups, alpha=alpha)
    return estimate.clip(-1.0, 1.0) if is_bounded(measure) else estimate


@dataclass(frozen=True, eq=False)
class DetailedSet:
    """Detailed systems on one collection.

    Attributes:
        systems: Fitted, the baseline first.
        values: By system, shape (Q,): the primary measure.
        measure: The primary measure.
        groups: Shape (Q,): codes of the groups.
        alpha: 1 − coverage of intervals.
    """

    systems: tuple[System, ...]
    values: Mapping[str, FloatArray]
    measure: Measure
    groups: IntArray
    alpha: float

    @property
    def differences(self) -> FloatArray:
        """(Q,): the greatest difference of any system from the first one, the baseline."""
        base = self.values[self.systems[0].name]
        greatest: FloatArray = np.abs(np.stack([*self.values.values()]) - base).max(axis=0)
        return greatest

    def evaluate(
        self, systems: Sequence[System], runs: AlignedRuns
    ) -> Iterator[tuple[System, FloatArray | str]]:
        """Each system with its values on other lists, shape (Q,), or why it has none.

        Args:
            systems: Some of the systems.
            runs: The same queries.
        """
        values: list[FloatArray | str] | None = None
        with suppress(FusionBenchError):  # of one of them: below it says which
            values = [*self._evaluate(systems, runs)]
        if values is None:
            values = [self._evaluate_alone(system, runs) for system in systems]
        return zip(systems, values, strict=True)

    def _evaluate_alone(self, system: System, runs: AlignedRuns) -> FloatArray | str:
        try:
            return self._evaluate([system], runs)[0]
        except FusionBenchError as error:
            return _find_reason(error)

    def _evaluate(self, systems: Sequence[System], runs: AlignedRuns) -> list[FloatArray]:
        scores = evaluate_systems(systems, runs, [self.measure])
        return [each.values[0] for each in scores]


def _find_reason(error: BaseException) -> str:
    """The message of the first error, without the names that were put before it on its way."""
    while isinstance(error.__context__, FusionBenchError):
        error = error.__context__
    return str(error)


@dataclass(frozen=True, repr=False)
class _MeasureRows(PlainTable):
    """Values of systems on the primary measure, a row each.

    Attributes:
        measure: The primary measure.
        rows: Of :attr:`row_type`.
    """

    measure: str
    rows: tuple[Any, ...]
    row_type: ClassVar[type]

    def _summary(self) -> str:
        return f"{type(self).__name__}({self.measure}, {pluralize(len(self.rows), 'row')})"

    def _table_columns(self, limit: int | None = None) -> Columns:
        return list_columns(self.row_type, self.rows[:limit])


@dataclass(frozen=True)
class LeftOut:
    """One system without one of its sources, on the primary measure.

    Attributes:
        system: Its name.
        source: The source that is left out.
        mean: Mean without it; NaN = could not be evaluated.
        difference: Mean of without − with; below 0 = the source helps.
        low: Lower end of the difference's interval; NaN where nothing tells the spread.
        high: Upper end.
        reason: Why it could not be evaluated; empty = it was.
    """

    system: str
    source: str
    mean: float = math.nan
    difference: float = math.nan
    low: float = math.nan
    high: float = math.nan
    reason: str = ""


@dataclass(frozen=True, repr=False)
class LeaveOneOut(_MeasureRows):
    """Every detailed system of two or more sources, without each of them.

    A source that is left out weighs 0: the others keep their weights, and its candidates leave
    with it. A trained fusion is not fitted again: it sees a source that returned nothing.

    Attributes:
        measure: The primary measure.
        rows: One a system and source. The intervals are t intervals by group, not adjusted for
            their number.
    """

    rows: tuple[LeftOut, ...]
    row_type = LeftOut


def leave_sources_out(detailed: DetailedSet, runs: AlignedRuns) -> LeaveOneOut:
    """Evaluate the detailed systems without each of their sources.

    Args:
        detailed: The systems.
        runs: Aligned runs.
    """
    rows = {
        (row.system, row.source): row
        for source in runs.sources
        for row in _leave_out(detailed, runs, source)
    }
    pairs = ((system.name, source) for system in detailed.systems for source in runs.sources)
    return LeaveOneOut(detailed.measure.name, tuple(rows[pair] for pair in pairs if pair in rows))


def _leave_out(detailed: DetailedSet, runs: AlignedRuns, source: str) -> Iterator[LeftOut]:
    systems = [system for system in detailed.systems if _reads(system, source)]
    if not systems:
        return
    for system, values in detailed.evaluate(systems, _without_source(runs, source)):
        if isinstance(values, str):
            yield LeftOut(system.name, source, reason=values)
        else:
            yield _compare(detailed, system.name, source, values)


def _without_source(runs: AlignedRuns, source: str) -> AlignedRuns:
    """The runs with a source that is off for every query, and returned nothing.

    Systems that weigh their sources see the first, trained ones the second.
    """
    row = runs.sources.index(source)
    switches = list(runs.switches or (None,) * len(runs.sources))
    switches[row] = Switch(frozenset())
    ranks, scores = runs.ranks.copy(), runs.scores.copy()
    ranks[row], scores[row] = 0, math.nan
    return replace(runs, ranks=ranks, scores=scores, switches=tuple(switches))


def _reads(system: System, source: str) -> bool:
    """Whether a system reads the source, and others."""
    return source in system.base_runs and len(system.base_runs) > 1


def _compare(detailed: DetailedSet, system: str, source: str, values: FloatArray) -> LeftOut:
    estimate = estimate_difference(
        detailed.measure.name,
        values,
        detailed.values[system],
        detailed.groups,
        alpha=detailed.alpha,
    )
    return LeftOut(system, source, exact_mean(values), estimate.mean, estimate.low, estimate.high)


#: Depths at which the sources are cut, as far as they are deeper.
DEPTHS: Final = (5, 10, 20, 50, 100, 200, 500, 1000)


@dataclass(frozen=True)
class DepthMean:
    """One system whose sources are cut at one depth.

    Attributes:
        system: Its name.
        depth: The greatest rank of any source that is read; the system's own ``depth`` holds too.
        mean: Mean of the primary measure; NaN = could not be evaluated.
        reason: Why not; empty = it was.
    """

    system: str
    depth: int
    mean: float = math.nan
    reason: str = ""


@dataclass(frozen=True, repr=False)
class DepthCurve(_MeasureRows):
    """The detailed systems at growing depths of their sources.

    Attributes:
        measure: The primary measure.
        rows: By system, then by depth; the last depth is that of the deepest source.
    """

    rows: tuple[DepthMean, ...]
    row_type = DepthMean


def measure_depths(detailed: DetailedSet, runs: AlignedRuns) -> DepthCurve:
    """Evaluate the detailed systems on sources that are cut at each of :data:`DEPTHS`.

    Args:
        detailed: The systems.
        runs: Aligned runs.
    """
    rows = [row for depth in DEPTHS for row in _cut_at(detailed, runs, depth)]
    rows += [
        DepthMean(system.name, runs.max_rank, exact_mean(detailed.values[system.name]))
        for system in detailed.systems
    ]
    order = {system.name: place for place, system in enumerate(detailed.systems)}
    return DepthCurve(
        detailed.measure.name, tuple(sorted(rows, key=lambda row: (order[row.system], row.depth)))
    )


def _cut_at(detailed: DetailedSet, runs: AlignedRuns, depth: int) -> Iterator[DepthMean]:
    if depth >= runs.max_rank:
        return
    # The copy has a cache of its own: the cut lists go when they have been evaluated.
    cut = replace(runs).restrict(runs.sources, dict.fromkeys(runs.sources, depth))
    for system, values in detailed.evaluate(detailed.systems, cut):
        if isinstance(values, str):
            yield DepthMean(system.name, depth, reason=values)
        else:
            yield DepthMean(system.name, depth, exact_mean(values))
