"""A system is a fusion and a blend over named runs; evaluating it is a pure function of arrays."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from fusion_bench import measures as measure
from fusion_bench.batch import (
    BatchResult,
    RankedLists,
    SystemSpec,
    Unsupported,
    evaluate_batch,
    rank_system,
)
from fusion_bench.blend import Fused
from fusion_bench.blend.none import NoBlend
from fusion_bench.config.query_types import type_of
from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.ordering import (
    FloatArray,
    IntArray,
    make_readonly,
    positions,
    tie_group_starts,
)
from fusion_bench.data.records import Qrels, ScoreSpace
from fusion_bench.data.shards import over_shards
from fusion_bench.data.view_cache import cached_by_view
from fusion_bench.errors import AlignmentError, ConfigError
from fusion_bench.experiment.system import System
from fusion_bench.fuse import Fusion
from fusion_bench.measures import Measure
from fusion_bench.measures.ir_measures_backend import ExternalMeasure

__all__ = [
    "Scores",
    "SystemRanking",
    "evaluate_systems",
    "fused_list",
    "plain_systems",
    "queries_by_type",
    "rank_candidates",
    "rank_queries",
    "ranked_lists",
    "system_spec",
]

#: Fused lists that a view remembers, for systems that differ only in their blend.
FUSED_KEPT = 4


@dataclass(frozen=True, eq=False)
class SystemRanking:
    """One plain system's final list for every query of ``runs``.

    Attributes:
        runs: The view that was ranked; its N candidates are the rows below.
        scores: Shape (N,): final scores.
        tiers: Shape (N,): see ``Blended``.
        deciding: Shape (N,): what the order was decided on, see ``Blended``.
        placed: Shape (N,): 1-based position before ``top_k`` cuts; 0 = dropped.
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


def rank_candidates(
    system: System, runs: AlignedRuns, spaces: Mapping[str, ScoreSpace]
) -> SystemRanking:
    """Order the candidates of every query as a plain system does.

    Args:
        system: Without weights by type; :func:`rankings` resolves those.
        runs: All sources of the dataset.
        spaces: Score space of each rerank list.
    """
    with _named(system):
        view = system.active_runs(runs)
        fused = fused_list(system, view)
        scores, tiers, deciding = system.blend.blend(view, fused, spaces)
    if system.min_relevance is not None:
        tiers = np.where(scores < system.min_relevance, -1, tiers).astype(np.int8)
    if isinstance(system.blend, NoBlend) and system.min_relevance is None:
        placed = fused.positions
    else:
        tie_order = fused.positions if view.ties == "first_seen" else None
        placed = positions(deciding, view.offsets, tiers=tiers, tie_order=tie_order)
    return SystemRanking(view, scores, tiers, deciding, placed, system.top_k)


def ranked_lists(
    system: System, runs: AlignedRuns, spaces: Mapping[str, ScoreSpace]
) -> tuple[AlignedRuns, RankedLists]:
    """The view that a plain system ranks, and its lists.

    They are those of :func:`rank`, which is called only for what the batch engine cannot do.
    """
    with _named(system):
        view = system.active_runs(runs)
        try:
            lists = rank_system(system_spec(system), view, spaces)
        except (AlignmentError, ConfigError):
            lists = Unsupported("its sources raise an error")
    if isinstance(lists, Unsupported):
        ranking = rank_candidates(system, runs, spaces)
        return view, RankedLists(ranking.ranks_before_cut, ranking.tie_starts)
    return view, lists


def fused_list(system: System, view: AlignedRuns) -> Fused:
    """The fused list of a plain system on its own view of the runs, made once."""
    return _fuse(view, system.fusion)


@cached_by_view(keep=FUSED_KEPT, key=lambda fusion: (type(fusion), fusion.model_dump_json()))
def _fuse(view: AlignedRuns, fusion: Fusion) -> Fused:
    scores = fusion.fuse(view)
    fused = Fused(
        fusion.display_scores(scores),
        positions(scores, view.offsets),
        fusion.max_possible(view),
        scores,
    )
    for array in fused:
        make_readonly(array)
    return fused


@contextmanager
def _named(system: System) -> Iterator[None]:
    """Say which system an error is about."""
    try:
        yield
    except ConfigError as error:
        raise ConfigError(f"system {system.name!r}: {error}") from None
    except AlignmentError as error:
        raise AlignmentError(f"system {system.name!r}: {error}") from None


def rank_queries(
    system: System, runs: AlignedRuns, spaces: Mapping[str, ScoreSpace]
) -> Iterator[tuple[IntArray, SystemRanking]]:
    """The rankings that together cover every query, each with the indices of its queries."""
    for index, plain, part in plain_systems(system, runs):
        yield index, rank_candidates(plain, part, spaces)


def plain_systems(
    system: System, runs: AlignedRuns
) -> Iterator[tuple[IntArray, System, AlignedRuns]]:
    """Plain systems that together answer every query: its indices, who answers it, its runs."""
    for query_type, index, part in queries_by_type(system, runs):
        yield index, system if query_type is None else system.of_type(query_type), part


def queries_by_type(
    system: System, runs: AlignedRuns
) -> Iterator[tuple[str | None, IntArray, AlignedRuns]]:
    """The queries that a system answers by each type's numbers: type, indices and runs.

    One part of type None where all are answered alike; otherwise a part for each type that has
    queries, made once.
    """
    known = system.query_types
    if known is None:
        yield None, np.arange(len(runs.queries)), runs
        return
    types = _resolved_types(runs, known)
    for query_type in sorted(set(types.tolist())):
        keep = types == query_type
        yield query_type, np.flatnonzero(keep), _runs_of_type(runs, query_type, known)


def _resolved_types(runs: AlignedRuns, known: tuple[str, ...]) -> NDArray[np.str_]:
    """(Q,): the type that answers each query."""
    pairs = zip(runs.types, runs.confidences, strict=True)
    return np.array([type_of(query_type, confidence, known) for query_type, confidence in pairs])


@cached_by_view()
def _runs_of_type(runs: AlignedRuns, query_type: str, known: tuple[str, ...]) -> AlignedRuns:
    return runs.subset(_resolved_types(runs, known) == query_type)


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
        with _named(part.system):
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


def system_spec(system: System) -> SystemSpec:
    """A plain system as the engine sees it."""
    blend = None if isinstance(system.blend, NoBlend) else system.blend
    return SystemSpec(system.fusion, blend, system.min_relevance, system.top_k)


def resolved_config(system: System) -> dict[str, Any]:
    """The system with every default spelled out, as it goes into a report."""
    return system.model_dump(mode="json", exclude={"name"})
