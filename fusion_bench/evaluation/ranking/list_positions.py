"""The positions that a system returns its documents at."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.ordering import IntArray
from fusion_bench.data.records import ScoreSpace
from fusion_bench.evaluation.ranking.plain_systems import plain_systems
from fusion_bench.evaluation.ranking.system_ranking import ranked_lists
from fusion_bench.experiment.system import System


def list_parts(
    system: System, runs: AlignedRuns, spaces: Mapping[str, ScoreSpace]
) -> list[tuple[IntArray, AlignedRuns, IntArray]]:
    """For each part of the queries: their indices, a view, and positions; 0 = not returned.

    Args:
        system: Fitted, where it has trained parts.
        runs: Aligned runs.
        spaces: Score space of each rerank list.
    """
    parts = []
    for index, plain, part in plain_systems(system, runs, spaces):
        view, (before_cut, _) = ranked_lists(plain, part, spaces)
        parts.append((index, view, cut_positions(before_cut, plain.top_k)))
    return parts


def cut_positions(before_cut: IntArray, top_k: int | None) -> IntArray:
    """The same positions, 0 beyond ``top_k``; None = no cut."""
    return before_cut if top_k is None else np.where(before_cut > top_k, 0, before_cut)
