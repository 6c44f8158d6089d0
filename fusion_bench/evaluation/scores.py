"""Per-query measure values of systems over aligned runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from fusion_bench import measures as measure
from fusion_bench.batch import BatchResult, Unsupported, evaluate_batch
from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.ordering import FloatArray, IntArray, make_readonly
from fusion_bench.data.records import Qrels, ScoreSpace
from fusion_bench.data.shards import over_shards
from fusion_bench.errors import AlignmentError, ConfigError
from fusion_bench.evaluation.ranking import (
    name_system_in_errors,
    plain_systems,
    rank_candidates,
    system_spec,
)
from fusion_bench.experiment.system import System
from fusion_bench.measures import Measure
from fusion_bench.measures.ir_measures_backend import ExternalMeasure

__all__ = ["Scores", "evaluate_systems", "resolved_config"]


@dataclass(frozen=True, eq=False)
class Scores:
    """Per-query values of one system.

    Attributes:
        system: Its name.
        measures: The M measures.
        queries: The Q query ids.
        values: Shape (M, Q).
        path: How they were found: ``counted`` by the engine, or ``ranked`` and why.
    """

    system: str
    measures: tuple[Measure, ...]
    queries: tuple[str, ...]
    values: FloatArray
    evaluation_path: str


def evaluate_systems(
    systems: Sequence[System],
    runs: AlignedRuns,
    measures: Sequence[Measure],
    *,
    spaces: Mapping[str, ScoreSpace] | None = None,
    qrels: Qrels | None = None,
    threads: int | None = None,
) -> tuple[Scores, ...]:
    """Evaluate any number of systems on the same aligned runs.

    What the engine can count is counted, all at once where systems share their sources; systems
    that share a fusion share its lists. The rest is ranked, and ``Scores.path`` says why. The
    values are the same to the last bit, however many threads share the work.

    Args:
        systems: T systems; one is the plain case.
        runs: Aligned runs.
        measures: M measures.
        spaces: Score space of each rerank list.
        qrels: The judgements; only measures that ir_measures computes need them.
        threads: How many may work on many queries (see :mod:`fusion_bench.data.shards`); None = as
            ``FUSION_BENCH_THREADS`` says, or one for each processor. Few queries need one.

    Returns:
        One ``Scores`` a system, in their order.
    """

    def work(part: AlignedRuns) -> tuple[FloatArray, list[list[str]]]:
        return _values(systems, part, measures, spaces or {}, qrels)

    if any(isinstance(measure, ExternalMeasure) for measure in measures):
        found = [work(runs)]  # ir_measures would read all judgements again for each shard
    else:
        found = list(over_shards(work, runs, threads))
    values = np.concatenate([part for part, _ in found], axis=2)
    make_readonly(values)
    paths = [[path for _, part in found for path in part[t]] for t in range(len(systems))]
    return tuple(
        Scores(system.name, tuple(measures), runs.queries, mine, _summed_up(taken))
        for system, mine, taken in zip(systems, values, paths, strict=True)
    )


def _summed_up(paths: Sequence[str]) -> str:
    """The paths of the parts of one system, each said once."""
    return "; ".join(dict.fromkeys(paths))


def _values(
    systems: Sequence[System],
    runs: AlignedRuns,
    measures: Sequence[Measure],
    spaces: Mapping[str, ScoreSpace],
    qrels: Qrels | None,
) -> tuple[FloatArray, list[list[str]]]:
    """(T, M, Q), and which path each part of each system took."""
    values = np.zeros((len(systems), len(measures), len(runs.queries)))
    paths: list[list[str]] = [[] for _ in systems]
    parts = [
        _Part(t, index, plain, part)
        for t, system in enumerate(systems)
        for index, plain, part in plain_systems(system, runs)
    ]
    counted = _counted(parts, measures, spaces)
    for p, part in enumerate(parts):
        found = counted.get(p, Unsupported("its sources raise an error"))
        if isinstance(found, Unsupported):
            mine = _ranked(part.system, part.runs, measures, spaces, qrels)
            path = f"ranked: {found.reason}"
        else:
            mine, path = found.values, "counted"
            if found.unresolved.any():
                mine = mine.copy()
                few = part.runs.subset(found.unresolved)
                mine[:, found.unresolved] = _ranked(part.system, few, measures, spaces, qrels)
                path = "counted, but for queries whose ties reach too far: ranked"
        values[part.place][:, part.index] = mine
        paths[part.place].append(path)
    return values, paths


def _ranked(
    system: System,
    runs: AlignedRuns,
    measures: Sequence[Measure],
    spaces: Mapping[str, ScoreSpace],
    qrels: Qrels | None,
) -> FloatArray:
    """(M, Q): the plain path."""
    ranking = rank_candidates(system, runs, spaces)
    return measure.compute_measures(measures, ranking.runs, ranking.positions, qrels=qrels)


@dataclass(frozen=True)
class _Part:
    """A plain system, the queries that it answers, and where its values go."""

    place: int
    index: IntArray
    system: System
    runs: AlignedRuns


Found: TypeAlias = BatchResult | Unsupported


def _counted(
    parts: Sequence[_Part], measures: Sequence[Measure], spaces: Mapping[str, ScoreSpace]
) -> dict[int, Found]:
    """What the engine can evaluate, by index into ``parts``, and why it cannot do the rest."""
    views: dict[int, tuple[AlignedRuns, list[int]]] = {}
    for p, part in enumerate(parts):
        with name_system_in_errors(part.system):
            view = part.system.active_runs(part.runs)
        views.setdefault(id(view), (view, []))[1].append(p)
    done: dict[int, Found] = {}
    for view, members in views.values():
        asked = [system_spec(parts[p].system) for p in members]
        try:
            found = evaluate_batch(asked, view, measures, spaces)
        except (AlignmentError, ConfigError):
            continue  # ranking them meets the same error, and says which system it is about
        done |= dict(zip(members, found, strict=True))
    return done


def resolved_config(system: System) -> dict[str, Any]:
    """The system with every default spelled out, as it goes into a report."""
    return system.model_dump(mode="json", exclude={"name"})
