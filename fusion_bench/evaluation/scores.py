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


@dataclass(frozen=True, eq=False)
class Scores:
    """Per-query values of one system.

    Attributes:
        system: Its name.
        measures: The M measures.
        queries: The Q query ids.
        values: Shape (M, Q).
        evaluation_path: ``counted`` by the batch engine, or ``ranked`` and why.
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

    The batch engine counts whatever it supports, all systems of the same sources at once. The
    other systems are ranked, and ``Scores.evaluation_path`` gives the reason. The values are
    bitwise equal for any number of threads.

    Args:
        systems: T systems.
        runs: Aligned runs.
        measures: M measures.
        spaces: Score space of each rerank list.
        qrels: The judgments; only measures that ir_measures computes need them.
        threads: How many may work on many queries (see :mod:`fusion_bench.data.shards`); None = as
            ``FUSION_BENCH_THREADS`` says, or one for each processor. Few queries need one.

    Returns:
        One ``Scores`` per system, in the same order.
    """

    def work(part: AlignedRuns) -> tuple[FloatArray, list[list[str]]]:
        return _evaluate_parts(systems, part, measures, spaces or {}, qrels)

    if any(isinstance(measure, ExternalMeasure) for measure in measures):
        parts = [work(runs)]  # ir_measures would read all judgments again for each shard
    else:
        parts = list(over_shards(work, runs, threads))
    values = np.concatenate([part for part, _ in parts], axis=2)
    make_readonly(values)
    paths = [[path for _, part in parts for path in part[t]] for t in range(len(systems))]
    return tuple(
        Scores(system.name, tuple(measures), runs.queries, system_values, _join_paths(taken))
        for system, system_values, taken in zip(systems, values, paths, strict=True)
    )


def _join_paths(paths: Sequence[str]) -> str:
    """The distinct evaluation paths of the parts of one system."""
    return "; ".join(dict.fromkeys(paths))


def _evaluate_parts(
    systems: Sequence[System],
    runs: AlignedRuns,
    measures: Sequence[Measure],
    spaces: Mapping[str, ScoreSpace],
    qrels: Qrels | None,
) -> tuple[FloatArray, list[list[str]]]:
    """(T, M, Q) values, and the evaluation path of each part of each system."""
    values = np.zeros((len(systems), len(measures), len(runs.queries)))
    paths: list[list[str]] = [[] for _ in systems]
    parts = [
        _Part(t, index, plain, part)
        for t, system in enumerate(systems)
        for index, plain, part in plain_systems(system, runs)
    ]
    results = _count_parts(parts, measures, spaces)
    for p, part in enumerate(parts):
        result = results.get(p, Unsupported("its sources raise an error"))
        if isinstance(result, Unsupported):
            part_values = _rank_and_measure(part.system, part.runs, measures, spaces, qrels)
            path = f"ranked: {result.reason}"
        else:
            part_values, path = result.values, "counted"
            if result.unresolved.any():
                part_values = part_values.copy()
                few = part.runs.subset(result.unresolved)
                part_values[:, result.unresolved] = _rank_and_measure(
                    part.system, few, measures, spaces, qrels
                )
                path = "counted, but for queries whose ties reach too far: ranked"
        values[part.place][:, part.index] = part_values
        paths[part.place].append(path)
    return values, paths


def _rank_and_measure(
    system: System,
    runs: AlignedRuns,
    measures: Sequence[Measure],
    spaces: Mapping[str, ScoreSpace],
    qrels: Qrels | None,
) -> FloatArray:
    """(M, Q): values of the full ranking, without the batch engine."""
    ranking = rank_candidates(system, runs, spaces)
    return measure.compute_measures(measures, ranking.runs, ranking.positions, qrels=qrels)


@dataclass(frozen=True)
class _Part:
    """A plain system, the queries that it answers, and where its values go."""

    place: int
    index: IntArray
    system: System
    runs: AlignedRuns


PartResult: TypeAlias = BatchResult | Unsupported


def _count_parts(
    parts: Sequence[_Part], measures: Sequence[Measure], spaces: Mapping[str, ScoreSpace]
) -> dict[int, PartResult]:
    """Results of the batch engine by index into ``parts``, or why it cannot evaluate one."""
    views: dict[int, tuple[AlignedRuns, list[int]]] = {}
    for p, part in enumerate(parts):
        with name_system_in_errors(part.system):
            view = part.system.active_runs(part.runs)
        views.setdefault(id(view), (view, []))[1].append(p)
    results: dict[int, PartResult] = {}
    for view, members in views.values():
        specs = [system_spec(parts[p].system) for p in members]
        try:
            part_results = evaluate_batch(specs, view, measures, spaces)
        except (AlignmentError, ConfigError):
            continue  # ranking them meets the same error, and says which system it is about
        results |= dict(zip(members, part_results, strict=True))
    return results


def resolved_config(system: System) -> dict[str, Any]:
    """The system with every default spelled out, as it goes into a report."""
    return system.model_dump(mode="json", exclude={"name"})
