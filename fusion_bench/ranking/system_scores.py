"""Per-query measure values of systems over aligned runs, some queries at a time.

No query depends on another, so neither the shards nor the threads change a value. A shard's
derived arrays fit the caches better than those of a million queries would, and where the data are
mapped from disk, only a few shards are in memory at a time.
"""

from __future__ import annotations

import gc
import os
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Final, TypeVar

import numpy as np

from fusion_bench import measures as measure
from fusion_bench.config.models import MOST_WORKERS
from fusion_bench.data.aligned_runs import AlignedRuns, cached_by_view
from fusion_bench.data.ordering import FloatArray, make_readonly
from fusion_bench.errors import AlignmentError, ConfigError
from fusion_bench.experiment.system import System
from fusion_bench.measures import Measure
from fusion_bench.measures.external_measures import ExternalMeasure
from fusion_bench.ranking.batch_engine import BatchResult, Unsupported, evaluate_batch
from fusion_bench.ranking.plain_systems import fit_system, plain_systems
from fusion_bench.ranking.system_ranking import name_system_in_errors, rank_candidates, system_spec
from fusion_bench.stats.repeat_variance import mean_of_repeats
from fusion_bench.util.formatting import Columns, TableView, pluralize

T = TypeVar("T")

#: The environment variable that fixes the number of threads.
THREADS: Final = "FUSION_BENCH_THREADS"


@dataclass(frozen=True)
class ShardLimits:
    """Limits of shards: they bound memory, and change no value.

    Attributes:
        candidates: Of one shard, about; fewer are not divided.
        cached_candidates: Of more, no shard is kept: what derives from it is made again in each
            call.
    """

    candidates: int = 2_000_000
    cached_candidates: int = 60_000_000


DEFAULT_LIMITS: Final = ShardLimits()
#: For systems that are evaluated once.
UNCACHED: Final = ShardLimits(candidates=500_000, cached_candidates=0)


def shards(runs: AlignedRuns, limits: ShardLimits = DEFAULT_LIMITS) -> Iterator[AlignedRuns]:
    """All queries, some at a time, in their order; only one shard where there are not many."""
    bounds = _shard_bounds(runs, limits)
    if len(bounds) == 2:
        yield runs
        return
    is_cached = int(runs.offsets[-1]) <= limits.cached_candidates
    for start, stop in pairwise(bounds):
        yield _cached_shard(runs, start, stop) if is_cached else runs.between(start, stop)
        if not is_cached:
            gc.collect()  # what was derived from a shard refers to it


def query_blocks(
    runs: AlignedRuns, measures: Sequence[Measure]
) -> Iterator[tuple[int, AlignedRuns]]:
    """The shards of the queries, each with the number of its first query; none is kept.

    What was derived from a block refers to it, so only the garbage collector frees it.

    All queries are one block if ir_measures computes a measure: it reads all judgments each time.

    Args:
        runs: Aligned runs.
        measures: What is measured on each block.
    """
    bounds = _shard_bounds(runs, DEFAULT_LIMITS)
    if len(bounds) == 2 or any(isinstance(measure, ExternalMeasure) for measure in measures):
        yield 0, runs
        return
    for start, stop in pairwise(_shard_bounds(runs, UNCACHED)):
        yield start, runs.between(start, stop)
        gc.collect()


def over_shards(
    work: Callable[[AlignedRuns], T],
    runs: AlignedRuns,
    threads: int | None = None,
    limits: ShardLimits = DEFAULT_LIMITS,
) -> Iterator[T]:
    """What ``work`` makes of each shard, in their order.

    Args:
        work: Free of side effects.
        runs: Aligned runs, in memory or mapped.
        threads: So many shards at a time; None = as the environment variable says, or one for
            each processor.
        limits: How much a shard holds.

    Raises:
        ConfigError: A number of threads that is not a whole number above 0.
    """
    count = min(threads_of(threads), len(_shard_bounds(runs, limits)) - 1)
    if count == 1:
        yield from map(work, shards(runs, limits))
        return
    from concurrent.futures import Future, ThreadPoolExecutor  # late: small data has one shard

    with ThreadPoolExecutor(count) as pool:
        waiting: deque[Future[T]] = deque()
        try:
            for shard in shards(runs, limits):
                waiting.append(pool.submit(work, shard))
                if len(waiting) > count:  # no more shards in memory than threads, and one ahead
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()


def threads_of(given: int | None) -> int:
    """How many threads to use at most."""
    text = str(given) if given is not None else os.environ.get(THREADS, "")
    if not text:
        has_affinity = hasattr(os, "sched_getaffinity")  # those that this process may use
        return len(os.sched_getaffinity(0)) if has_affinity else os.cpu_count() or 1
    is_short = text.isascii() and text.isdigit() and len(text) <= len(str(MOST_WORKERS))
    if not (is_short and 0 < int(text) <= MOST_WORKERS):
        where = "threads" if given is not None else THREADS
        raise ConfigError(f"{where}: {text!r:.60} is not a whole number from 1 to {MOST_WORKERS:,}")
    return int(text)


def _shard_bounds(runs: AlignedRuns, limits: ShardLimits) -> list[int]:
    """Where shards begin and end, as query numbers."""
    queries, candidates = len(runs.queries), int(runs.offsets[-1])
    count = max(min(round(candidates / limits.candidates), queries), 1)
    targets = np.arange(1, count) * (candidates / count)
    inner = np.searchsorted(runs.offsets, targets)
    return sorted({0, *inner.tolist(), queries})


@cached_by_view()
def _cached_shard(runs: AlignedRuns, start: int, stop: int) -> AlignedRuns:
    return runs.between(start, stop)


@dataclass(frozen=True, eq=False, repr=False)
class Scores(TableView):
    """Per-query values of one system.

    Attributes:
        system: Its name.
        measures: The M measures.
        queries: The Q query ids.
        repeats: Shape (T, M, Q): the values of each of its T repeats; T = 1 where every list that
            it reads has one file.
        evaluation_path: ``counted`` by the batch engine, or ``ranked`` and why.
    """

    system: str
    measures: tuple[Measure, ...]
    queries: tuple[str, ...]
    repeats: FloatArray
    evaluation_path: str

    @cached_property
    def values(self) -> FloatArray:
        """(M, Q): the means over the repeats."""
        return mean_of_repeats(self.repeats)

    def to_dict(self) -> dict[str, dict[str, float]]:
        """Measure → query → value."""
        rows = zip(self.measures, self.values.tolist(), strict=True)
        return {measure.name: dict(zip(self.queries, row, strict=True)) for measure, row in rows}

    def _summary(self) -> str:
        means = (
            f"{m.name} {row.mean():.4f}" for m, row in zip(self.measures, self.values, strict=True)
        )
        return (
            f"Scores({self.system!r}, {pluralize(len(self.queries), 'query')}, {', '.join(means)})"
        )

    def _table_columns(self, limit: int | None = None) -> Columns:
        values = self.values[:, :limit].tolist()
        columns = {m.name: row for m, row in zip(self.measures, values, strict=True)}
        return {"query": self.queries[:limit], **columns}


def evaluate_systems(
    systems: Sequence[System],
    runs: AlignedRuns,
    measures: Sequence[Measure],
    *,
    training: AlignedRuns | None = None,
    threads: int | None = None,
    limits: ShardLimits = DEFAULT_LIMITS,
) -> tuple[Scores, ...]:
    """Evaluate any number of systems on the same aligned runs.

    Each is evaluated on every repeat of the lists that it reads, and its values are the means.
    Trained fusions are fitted first, out of fold, on each repeat by itself. The batch engine counts
    whatever it supports, all systems of the same sources at once. The other systems are ranked, and
    ``Scores.evaluation_path`` gives the reason. The values are bitwise equal for any number of
    threads.

    Args:
        systems: T systems.
        runs: Aligned runs.
        measures: M measures.
        training: The queries that trained fusions learn from; None = the evaluated ones.
        threads: How many may work on many queries (see ``shards``); None = as
            ``FUSION_BENCH_THREADS`` says, or one for each processor. Few queries need one.
        limits: How many queries are looked at together.

    Returns:
        One ``Scores`` per system, in the same order.
    """
    parts: list[list[Scores]] = [[] for _ in systems]
    learned = (runs if training is None else training).repeats
    for number, (repeat, lists) in enumerate(zip(runs.repeats, learned, strict=True), 1):
        present = [
            t
            for t, system in enumerate(systems)
            if number == 1 or number <= runs.count_repeats(system.list_keys)
        ]
        fitted = [fit_system(systems[t], lists) for t in present]
        scores = _evaluate_fitted(fitted, repeat, measures, threads, limits) if present else ()
        for t, each in zip(present, scores, strict=True):
            parts[t].append(each)
    return tuple(
        replace(first, repeats=np.concatenate([first.repeats, *(each.repeats for each in later)]))
        if later
        else first
        for first, *later in parts
    )


def _evaluate_fitted(
    systems: Sequence[System],
    runs: AlignedRuns,
    measures: Sequence[Measure],
    threads: int | None,
    limits: ShardLimits,
) -> tuple[Scores, ...]:
    def work(part: AlignedRuns) -> tuple[FloatArray, list[list[str]]]:
        return _evaluate_parts(systems, part, measures)

    if any(isinstance(measure, ExternalMeasure) for measure in measures):
        parts = [work(runs)]  # ir_measures would read all judgments again for each shard
    else:
        parts = list(over_shards(work, runs, threads, limits))
    values = np.concatenate([part for part, _ in parts], axis=2)
    make_readonly(values)
    return tuple(
        Scores(
            system.name,
            tuple(measures),
            runs.queries,
            values[None, t],
            "; ".join(dict.fromkeys(path for _, part in parts for path in part[t])),
        )
        for t, system in enumerate(systems)
    )


def _evaluate_parts(
    systems: Sequence[System], runs: AlignedRuns, measures: Sequence[Measure]
) -> tuple[FloatArray, list[list[str]]]:
    """(T, M, Q) values, and the evaluation path of each part of each system."""
    values = np.zeros((len(systems), len(measures), len(runs.queries)))
    paths: list[list[str]] = [[] for _ in systems]

    def rank_and_measure(system: System, part: AlignedRuns) -> FloatArray:
        ranking = rank_candidates(system, part)
        return measure.compute_measures(measures, ranking.runs, ranking.positions)

    places = [
        (t, *plain) for t, system in enumerate(systems) for plain in plain_systems(system, runs)
    ]
    results = _count_parts([place[2:] for place in places], measures)
    for (t, index, system, part), result in zip(places, results, strict=True):
        if isinstance(result, Unsupported):
            values[t][:, index] = rank_and_measure(system, part)
            paths[t].append(f"ranked: {result.reason}")
            continue
        values[t][:, index] = result.values
        if result.unresolved.any():
            few = part.subset(result.unresolved)
            values[t][:, index[result.unresolved]] = rank_and_measure(system, few)
            paths[t].append("counted, but for queries whose ties reach too far: ranked")
        else:
            paths[t].append("counted")
    return values, paths


def _count_parts(
    parts: Sequence[tuple[System, AlignedRuns]], measures: Sequence[Measure]
) -> list[BatchResult | Unsupported]:
    """For each plain system and its runs the batch engine's result, or why it has none."""
    views: dict[int, tuple[AlignedRuns, list[int]]] = {}
    for p, (system, runs) in enumerate(parts):
        with name_system_in_errors(system):
            view = system.active_runs(runs)
        views.setdefault(id(view), (view, []))[1].append(p)
    # Ranking them meets the same error, and says which system it is about.
    results: list[BatchResult | Unsupported]
    results = [Unsupported("its sources raise an error") for _ in parts]
    for view, members in views.values():
        specs = [system_spec(parts[p][0]) for p in members]
        with suppress(AlignmentError, ConfigError):
            part_results = evaluate_batch(specs, view, measures)
            for p, result in zip(members, part_results, strict=True):
                results[p] = result
    return results
