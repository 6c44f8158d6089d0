"""What a system loses without one of its sources."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.ordering import FloatArray
from fusion_bench.data.switches import Switch
from fusion_bench.evaluation.details.detailed_set import DetailedSet
from fusion_bench.evaluation.details.plain_data import PlainTable
from fusion_bench.evaluation.mean_difference import estimate_difference
from fusion_bench.experiment.system import System
from fusion_bench.stats.intervals import exact_mean
from fusion_bench.util.formatting import pluralize
from fusion_bench.util.table_view import Columns, list_columns


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
class LeaveOneOut(PlainTable):
    """Every detailed system of two or more sources, without each of them.

    A source that is left out weighs 0: the others keep their weights, and its candidates leave
    with it. A trained fusion is not fitted again: it sees a source that returned nothing.

    Attributes:
        measure: The primary measure.
        rows: One a system and source. The intervals are t intervals by group, not adjusted for
            their number.
    """

    measure: str
    rows: tuple[LeftOut, ...]

    def _summary(self) -> str:
        return f"LeaveOneOut({self.measure}, {pluralize(len(self.rows), 'row')})"

    def _table_columns(self, limit: int | None = None) -> Columns:
        return list_columns(LeftOut, self.rows[:limit])


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
