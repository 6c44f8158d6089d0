"""How much each value depends on the order of equal scores inside the lists that a system reads."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.ordering import FloatArray
from fusion_bench.data.qrels import Qrels
from fusion_bench.data.records import ScoreSpace
from fusion_bench.evaluation.source_ties.sampled_ranges import (
    SETTLEMENTS,
    find_affordable,
    rank_readers,
    sample_ranges,
)
from fusion_bench.evaluation.source_ties.settled_runs import TiedRuns, find_tied_runs
from fusion_bench.evaluation.source_ties.single_list import single_list_ties
from fusion_bench.experiment.system import System
from fusion_bench.measures import Measure, TieSensitivity
from fusion_bench.measures.external.external_measure import ExternalMeasure


@dataclass(frozen=True, eq=False)
class SourceTies:
    """How much the values of one system depend on ties inside its lists.

    Attributes:
        ties: Over the orders that the scores of its lists allow.
        settlements: So many random ones; None = exactly, over all of them.
        unknown: Names of measures for which nothing was computed.
    """

    ties: TieSensitivity
    settlements: int | None
    unknown: frozenset[str] = frozenset()


def find_source_ties(
    systems: Mapping[str, System],
    values: Mapping[str, FloatArray],
    runs: AlignedRuns,
    measures: Sequence[Measure],
    *,
    spaces: Mapping[str, ScoreSpace],
    qrels: Qrels,
    ranked_by_column: Collection[str] = (),
    seed: int = 0,
    samples: bool = True,
) -> dict[str, SourceTies]:
    """Settle the ties inside the lists of each system otherwise.

    Exact where the final list of a system is one of its sources. For any other system the range
    is that of :data:`SETTLEMENTS` random settlements of its sources' ties. Ties of a rerank list
    count where only its order is read; the other blends read its scores.

    What would take too long is unknown: measures of ir_measures for such systems, and any measure
    for a system that the batch engine cannot count on a large collection.

    Args:
        systems: Fitted systems, by name.
        values: The values, (M, Q), of each.
        runs: Aligned runs.
        measures: M measures.
        spaces: Score space of each rerank list.
        qrels: The judgments.
        ranked_by_column: Lists whose order is that of a rank column: they have no ties.
        seed: Of the random settlements.
        samples: Whether to draw these; where not, what they would say is unknown.

    Returns:
        By name of the system.
    """
    results: dict[str, SourceTies] = {}
    for tied, members in _group_by_lists(systems, runs, spaces, ranked_by_column):
        rest = {}
        for name, system in members.items():
            if not tied.lists:
                results[name] = SourceTies(_unaffected(values[name]), None)
                continue
            exact = single_list_ties(
                system,
                runs,
                measures,
                spaces=spaces,
                qrels=qrels,
                ranked_by_column=ranked_by_column,
            )
            if exact is None:
                rest[name] = system
            else:
                results[name] = SourceTies(exact, None)
        readers = rank_readers(rest, tied, spaces) if rest else set()
        for name in rest.keys() - readers:
            results[name] = SourceTies(_unaffected(values[name]), None)
        sampled = {name: system for name, system in rest.items() if name in readers}
        if sampled:
            results |= _sample_systems(
                sampled, values, tied, measures, spaces, seed if samples else None
            )
    return {name: results[name] for name in systems}


def _group_by_lists(
    systems: Mapping[str, System],
    runs: AlignedRuns,
    spaces: Mapping[str, ScoreSpace],
    ranked_by_column: Collection[str],
) -> Iterator[tuple[TiedRuns, dict[str, System]]]:
    """The systems that read the same lists, with the ties in these."""
    groups: dict[tuple[frozenset[str], frozenset[str]], dict[str, System]] = {}
    for name, system in systems.items():
        rerankers = {name for name in system.reranker_names if spaces.get(name) == "order"}
        key = frozenset(system.base_runs), frozenset(rerankers)
        groups.setdefault(key, {})[name] = system
    for (sources, rerank_lists), members in groups.items():
        view = runs.restrict([name for name in runs.sources if name in sources])
        chosen = (names.difference(ranked_by_column) for names in (sources, rerank_lists))
        yield find_tied_runs(view, *chosen), members


def _unaffected(values: FloatArray) -> TieSensitivity:
    """Nothing depends on the order of ties."""
    copies = (values.copy() for _ in range(3))
    return TieSensitivity(np.zeros(len(values), dtype=np.int64), *copies)


def _sample_systems(
    systems: Mapping[str, System],
    values: Mapping[str, FloatArray],
    tied: TiedRuns,
    measures: Sequence[Measure],
    spaces: Mapping[str, ScoreSpace],
    seed: int | None,
) -> dict[str, SourceTies]:
    """The sampled ranges of systems that read the same lists with ties; unknown without a seed."""
    internal = [m for m, measure in enumerate(measures) if not isinstance(measure, ExternalMeasure)]
    unknown = frozenset(m.name for m in measures if isinstance(m, ExternalMeasure))
    known = [measures[m] for m in internal]
    is_asked = known and seed is not None
    affordable = find_affordable(systems, tied, known, spaces) if is_asked else set()
    every = frozenset(measure.name for measure in measures)
    results = {
        name: SourceTies(_unaffected(values[name]), None, every)
        for name in systems.keys() - affordable
    }
    chosen = {name: system for name, system in systems.items() if name in affordable}
    if seed is None or not chosen:
        return results
    ranges = sample_ranges([*chosen.values()], tied, known, spaces=spaces, seed=seed)
    for t, name in enumerate(chosen):
        part, given = ranges.tie_sensitivity(t), _unaffected(values[name])
        affected = given.affected.copy()
        extremes = np.stack([given.minimum, given.maximum, given.expected])
        affected[internal] = part.affected
        is_changed = part.maximum > part.minimum
        for row, settled in zip(extremes, (part.minimum, part.maximum, part.expected), strict=True):
            row[internal] = np.where(is_changed, settled, row[internal])
        results[name] = SourceTies(TieSensitivity(affected, *extremes), SETTLEMENTS, unknown)
    return results
