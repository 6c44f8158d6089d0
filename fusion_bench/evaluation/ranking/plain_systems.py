"""Any system as plain ones, each with one fusion and one blend for all queries it ranks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
from numpy.typing import NDArray

from fusion_bench.config.query_types import type_of
from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.ordering import FloatArray, IntArray
from fusion_bench.data.records import ScoreSpace
from fusion_bench.data.switches import Switch
from fusion_bench.data.view_cache import cached_by_view
from fusion_bench.evaluation.ranking.list_scores import list_scores
from fusion_bench.evaluation.ranking.policy_choice import choose_variants, runs_of_choice
from fusion_bench.evaluation.ranking.switched_sources import split_by_switches
from fusion_bench.evaluation.ranking.system_ranking import (
    name_owner_in_errors,
    name_system_in_errors,
    rank_candidates,
)
from fusion_bench.experiment.stages import source_roles
from fusion_bench.experiment.system import System

#: Sets of stages whose lists a view remembers.
STAGES_KEPT = 8


def plain_systems(
    system: System, runs: AlignedRuns, spaces: Mapping[str, ScoreSpace] | None = None
) -> Iterator[tuple[IntArray, System, AlignedRuns]]:
    """Plain systems that together cover every query: query indices, system, runs.

    Args:
        system: Any system.
        runs: All sources of the dataset.
        spaces: Score space of each rerank list; only stages with a blend need them.
    """
    if system.policy is not None:  # it may look at the lists of stages, too
        for index, plain, part in _split_by_policy(system, runs_with_stages(system, runs, spaces)):
            yield from _split_part(index, plain, part)
        return
    for index, plain, part in _split_by_type(system, runs):
        yield from _split_part(index, plain, runs_with_stages(plain, part, spaces))


def _split_part(
    index: IntArray, system: System, runs: AlignedRuns
) -> Iterator[tuple[IntArray, System, AlignedRuns]]:
    """The plain systems of some queries, each without the sources that are off for them."""
    for inner, plain, part in split_by_switches(system, runs):
        yield index[inner], plain, part


def _split_by_type(
    system: System, runs: AlignedRuns
) -> Iterator[tuple[IntArray, System, AlignedRuns]]:
    known = system.query_types
    if known is None:
        yield np.arange(len(runs.queries)), system, runs
        return
    types = _resolved_types(runs, known)
    for query_type in sorted(set(types.tolist())):
        part = _typed_runs(runs, query_type, known)
        yield np.flatnonzero(types == query_type), system.of_type(query_type), part


def _split_by_policy(
    system: System, runs: AlignedRuns
) -> Iterator[tuple[IntArray, System, AlignedRuns]]:
    with name_system_in_errors(system):
        codes, variants = choose_variants(system, runs)
        for code in np.unique(codes).tolist():
            keep = codes == code
            plain = system.with_variant(variants[code])
            yield np.flatnonzero(keep), plain, runs_of_choice(runs, keep)


def _resolved_types(runs: AlignedRuns, known: tuple[str, ...]) -> NDArray[np.str_]:
    """(Q,): the type whose settings apply to each query."""
    pairs = zip(runs.types, runs.confidences, strict=True)
    return np.array([type_of(query_type, confidence, known) for query_type, confidence in pairs])


def runs_of_type(runs: AlignedRuns, query_type: str, known: tuple[str, ...]) -> AlignedRuns | None:
    """The queries to which the settings of a type apply; None = there are none.

    Args:
        runs: Aligned runs.
        query_type: One of the known types.
        known: The types that have settings.
    """
    is_present = (_resolved_types(runs, known) == query_type).any()
    return _typed_runs(runs, query_type, known) if is_present else None


@cached_by_view()
def _typed_runs(runs: AlignedRuns, query_type: str, known: tuple[str, ...]) -> AlignedRuns:
    return runs.subset(_resolved_types(runs, known) == query_type)


def plain_system_of(
    system: System, runs: AlignedRuns, query: str, spaces: Mapping[str, ScoreSpace]
) -> tuple[System, AlignedRuns]:
    """The plain system that ranks a query, and the runs of that query alone.

    Args:
        system: Any system.
        runs: All sources of the dataset.
        query: Id of one of the queries.
        spaces: Score space of each rerank list.
    """
    row = runs.queries.index(query)
    for index, plain, part in plain_systems(system, runs, spaces):
        if row in index:
            return plain, part.subset(index == row)
    raise AssertionError("plain systems cover every query")


def runs_with_stages(
    system: System, runs: AlignedRuns, spaces: Mapping[str, ScoreSpace] | None = None
) -> AlignedRuns:
    """The runs with one more source for each stage of the system; themselves where it has none.

    Raises:
        ConfigError: A stage cannot be ranked; names system and stage.
    """
    if not system.stages:
        return runs
    with name_owner_in_errors(system):
        return add_stages(runs, system.stages, spaces or {})


def _stages_key(
    stages: Mapping[str, System], spaces: Mapping[str, ScoreSpace]
) -> tuple[object, ...]:
    systems = tuple((name, stage.model_dump_json()) for name, stage in stages.items())
    return (*systems, *sorted(spaces.items()))


@cached_by_view(keep=STAGES_KEPT, key=_stages_key)
def add_stages(
    runs: AlignedRuns, stages: Mapping[str, System], spaces: Mapping[str, ScoreSpace]
) -> AlignedRuns:
    """The runs with one more source for each stage: its final list."""
    for name, stage in stages.items():
        shared = source_roles(stage, dict(zip(runs.sources, runs.roles, strict=True))).values()
        ranks, scores = _stage_list(stage, runs, spaces)
        switch = _stage_switch(stage, runs)
        runs = runs.add_source(name, frozenset.intersection(*shared), ranks, scores, switch)
    return runs


def _stage_switch(stage: System, runs: AlignedRuns) -> Switch | None:
    """A stage is on where one of the runs that it reads is on."""
    if not runs.switches:
        return None
    on = [runs.switches[row] for row in runs.rows(stage.base_runs)]
    known = [switch.queries for switch in on if switch is not None]
    return Switch(frozenset().union(*known)) if len(known) == len(on) else None


def _stage_list(
    stage: System, runs: AlignedRuns, spaces: Mapping[str, ScoreSpace]
) -> tuple[IntArray, FloatArray]:
    """(N,) ranks, 0 = not in the list, and (N,) scores, which stand in their order."""
    ranks: IntArray = np.zeros(len(runs.documents), dtype=np.int64)
    scores: FloatArray = np.full(len(runs.documents), np.nan)
    for index, plain, part in plain_systems(stage, runs, spaces):
        ranking = rank_candidates(plain, part, spaces)
        view = ranking.runs
        rows = np.flatnonzero(ranking.positions > 0)
        rows = rows[np.lexsort((ranking.positions[rows], view.query_index[rows]))]
        places = runs.find_rows(index[view.query_index[rows]], view.documents[rows])
        ranks[places] = ranking.positions[rows]
        scores[places] = list_scores(ranking, rows)
    return ranks, scores
