"""Any system as plain ones, each with one fusion and one blend for all queries it ranks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.ordering import FloatArray, IntArray
from fusion_bench.data.records import ScoreSpace
from fusion_bench.data.switches import Switch
from fusion_bench.data.view_cache import cached_by_view
from fusion_bench.evaluation.ranking.list_scores import list_scores
from fusion_bench.evaluation.ranking.policy_choice import choose_variants, runs_of_choice
from fusion_bench.evaluation.ranking.query_classes import resolve_classes, runs_of_resolved_class
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
    for index, plain, part in _split_by_class(system, runs):
        yield from _split_part(index, plain, runs_with_stages(plain, part, spaces))


def _split_part(
    index: IntArray, system: System, runs: AlignedRuns
) -> Iterator[tuple[IntArray, System, AlignedRuns]]:
    """The plain systems of some queries, each without the sources that are off for them."""
    for inner, plain, part in split_by_switches(system, runs):
        yield index[inner], plain, part


def _split_by_class(
    system: System, runs: AlignedRuns
) -> Iterator[tuple[IntArray, System, AlignedRuns]]:
    key, known = system.class_key, system.query_classes
    if key is None or known is None:
        yield np.arange(len(runs.queries)), system, runs
        return
    classes = resolve_classes(runs, key, known, system.types)
    for name in sorted(set(classes.tolist())):
        part = runs_of_resolved_class(runs, name, key, known, system.types)
        yield np.flatnonzero(classes == name), system.of_class(name), part


def _split_by_policy(
    system: System, runs: AlignedRuns
) -> Iterator[tuple[IntArray, System, AlignedRuns]]:
    with name_system_in_errors(system):
        codes, variants = choose_variants(system, runs)
        for code in np.unique(codes).tolist():
            keep = codes == code
            plain = system.with_variant(variants[code])
            yield np.flatnonzero(keep), plain, runs_of_choice(runs, keep)


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
