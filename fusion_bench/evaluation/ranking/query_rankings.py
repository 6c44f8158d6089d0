"""The rankings of any system, for every query."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.ordering import IntArray
from fusion_bench.data.records import ScoreSpace
from fusion_bench.evaluation.ranking.fitting import fit_system
from fusion_bench.evaluation.ranking.plain_systems import plain_systems
from fusion_bench.evaluation.ranking.system_ranking import SystemRanking, rank_candidates
from fusion_bench.experiment.system import System


def rank_queries(
    system: System, runs: AlignedRuns, spaces: Mapping[str, ScoreSpace]
) -> Iterator[tuple[IntArray, SystemRanking]]:
    """Rankings that together cover every query, each with the indices of its queries."""
    for index, plain, part in plain_systems(fit_system(system, runs, spaces), runs, spaces):
        yield index, rank_candidates(plain, part, spaces)
