"""How good a system is when its sources return fewer documents."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.evaluation.details.detailed_set import DetailedSet
from fusion_bench.evaluation.details.plain_data import PlainTable
from fusion_bench.stats.intervals import exact_mean
from fusion_bench.util.formatting import pluralize
from fusion_bench.util.table_view import Columns, list_columns

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
class DepthCurve(PlainTable):
    """The detailed systems at growing depths of their sources.

    Attributes:
        measure: The primary measure.
        rows: By system, then by depth; the last depth is that of the deepest source.
    """

    measure: str
    rows: tuple[DepthMean, ...]

    def _summary(self) -> str:
        return f"DepthCurve({self.measure}, {pluralize(len(self.rows), 'row')})"

    def _table_columns(self, limit: int | None = None) -> Columns:
        return list_columns(DepthMean, self.rows[:limit])


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
