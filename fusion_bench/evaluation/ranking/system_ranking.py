"""The final order of the candidates under one system, for every query."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from fusion_bench.batch.ranked_lists import RankedLists, rank_system
from fusion_bench.batch.system_plans import SystemSpec, Unsupported
from fusion_bench.blend import Fused
from fusion_bench.blend.none import NoBlend
from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.ordering import (
    FloatArray,
    IntArray,
    make_readonly,
    positions,
    tie_group_starts,
)
from fusion_bench.data.records import ScoreSpace
from fusion_bench.data.view_cache import cached_by_view
from fusion_bench.errors import AlignmentError, ConfigError
from fusion_bench.experiment.system import System
from fusion_bench.fuse import Fusion

#: Fused lists that a view remembers, for systems that differ only in their blend.
FUSED_KEPT = 4


@dataclass(frozen=True, eq=False)
class SystemRanking:
    """The final list of one plain system for every query of ``runs``.

    Attributes:
        runs: The view that was ranked; its N candidates are the rows below.
        scores: Shape (N,): final scores.
        tiers: Shape (N,): see ``Blended``.
        sort_scores: Shape (N,): the scores that decide the order, see ``Blended``.
        ranks_before_cut: Shape (N,): 1-based position before ``top_k`` cuts; 0 = dropped.
        top_k: Where the list is cut; None = nowhere.
    """

    runs: AlignedRuns
    scores: FloatArray
    tiers: np.typing.NDArray[np.int8]
    sort_scores: FloatArray
    ranks_before_cut: IntArray
    top_k: int | None = None

    def __post_init__(self) -> None:
        for array in (self.scores, self.tiers, self.sort_scores, self.ranks_before_cut):
            make_readonly(array)

    @cached_property
    def positions(self) -> IntArray:
        """(N,): 1-based position in the list that is returned; 0 = not returned."""
        if self.top_k is None:
            return self.ranks_before_cut
        return np.where(self.ranks_before_cut > self.top_k, 0, self.ranks_before_cut)

    @cached_property
    def tie_starts(self) -> IntArray:
        """(N,): position of the first member of each candidate's group of ties."""
        return tie_group_starts(
            self.ranks_before_cut, self.sort_scores, self.runs.offsets, tiers=self.tiers
        )


def rank_candidates(
    system: System, runs: AlignedRuns, spaces: Mapping[str, ScoreSpace]
) -> SystemRanking:
    """Order the candidates of every query as a plain system does.

    Args:
        system: With one fusion and one blend; :mod:`~fusion_bench.evaluation.ranking.plain_systems`
            resolves others.
        runs: All sources of the dataset.
        spaces: Score space of each rerank list.
    """
    with name_system_in_errors(system):
        view = system.active_runs(runs)
        fused = fused_list(view, system.fusion)
        scores, tiers, sort_scores = system.blend.blend(view, fused, spaces)
    if system.min_relevance is not None:
        tiers = np.where(scores < system.min_relevance, -1, tiers).astype(np.int8)
    if isinstance(system.blend, NoBlend) and system.min_relevance is None:
        ranks = fused.positions
    else:
        tie_order = fused.positions if view.ties == "first_seen" else None
        ranks = positions(sort_scores, view.offsets, tiers=tiers, tie_order=tie_order)
    return SystemRanking(view, scores, tiers, sort_scores, ranks, system.top_k)


def ranked_lists(
    system: System, runs: AlignedRuns, spaces: Mapping[str, ScoreSpace]
) -> tuple[AlignedRuns, RankedLists]:
    """The view that a plain system ranks, and its lists.

    Equal to those of :func:`rank_candidates`, which runs only where the batch engine cannot.
    """
    with name_system_in_errors(system):
        view = system.active_runs(runs)
    with suppress(AlignmentError, ConfigError):  # ranking raises it again, naming the system
        lists = rank_system(system_spec(system), view, spaces)
        if not isinstance(lists, Unsupported):
            return view, lists
    ranking = rank_candidates(system, runs, spaces)
    return view, RankedLists(ranking.ranks_before_cut, ranking.tie_starts)


@cached_by_view(keep=FUSED_KEPT, key=lambda fusion: (type(fusion), fusion.model_dump_json()))
def fused_list(view: AlignedRuns, fusion: Fusion) -> Fused:
    """The fused list of a plain system on its own view of the runs, made once."""
    scores = fusion.fuse(view)
    ranks, top = positions(scores, view.offsets), fusion.max_possible(view)
    fused = Fused(fusion.display_scores(scores), ranks, top, scores)
    for array in fused:
        make_readonly(array)
    return fused


@contextmanager
def name_system_in_errors(system: System, where: str = "") -> Iterator[None]:
    """Prefix a configuration or alignment error with the name of the system.

    Args:
        system: The system.
        where: The part of it, as a further prefix.
    """
    try:
        yield
    except (AlignmentError, ConfigError) as error:
        kind = ConfigError if isinstance(error, ConfigError) else AlignmentError
        raise kind(f"system {system.name!r}: {where}{error}") from None


@contextmanager
def name_owner_in_errors(system: System) -> Iterator[None]:
    """Name a stage in an error as such, behind the system that it is a stage of.

    Args:
        system: The system around the stages.
    """
    try:
        yield
    except (AlignmentError, ConfigError) as error:
        kind = ConfigError if isinstance(error, ConfigError) else AlignmentError
        text = re.sub(r"^system (?=')", "stage ", str(error))
        raise kind(f"system {system.name!r}: {text}") from None


def system_spec(system: System) -> SystemSpec:
    """A plain system in the terms of the batch engine."""
    blend = None if isinstance(system.blend, NoBlend) else system.blend
    return SystemSpec(system.fusion, blend, system.min_relevance, system.top_k)
