"""How much each value depends on the order of equal scores inside the lists that a system reads."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from fusion_bench.checks.tied_lists import (
    Settlement,
    TiedRuns,
    find_tied_runs,
    restrict_ties,
    single_list_ties,
)
from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.ordering import FloatArray, IntArray
from fusion_bench.experiment.system import System
from fusion_bench.measures import Measure, TieSensitivity
from fusion_bench.measures.external_measures import ExternalMeasure
from fusion_bench.methods.fuse import Fusion, RankSum, WeightedMean
from fusion_bench.ranking.plain_systems import plain_systems
from fusion_bench.ranking.system_scores import evaluate_systems

#: Random settlements of every query whose value some settlement changes.
SETTLEMENTS: Final = 20
#: A query whose values neither of the first orders changes, one with every group of ties turned
#: round and a random one, is settled no further.
FIRST_ORDERS: Final = 2
#: A system that the batch engine cannot count is evaluated up to so many tied candidates.
MOST_RANKED: Final = 5_000
#: Queries that show how a system is evaluated.
PROBE: Final = 3
#: Values that differ by less are the same, computed on another path.
SAME: Final = 1e-12
#: Candidates that are evaluated at once, over all settlements.
MOST_CANDIDATES: Final = 1 << 18


def _sample_ranges(
    systems: Sequence[System],
    tied: TiedRuns,
    measures: Sequence[Measure],
    given: FloatArray,
    seed: int,
) -> Iterator[TieSensitivity]:
    """Range of each system's values over random settlements of the ties inside its lists.

    Least and greatest values are over the given order and the reversed one too.

    Args:
        systems: T systems, fitted; they stay as they were fitted.
        tied: The runs and their lists with ties.
        measures: M measures; none of ir_measures.
        given: Shape (T, M, Q): the values in the given order.
        seed: Of the settlements.
    """
    low, high, total = given.copy(), given.copy(), given * SETTLEMENTS
    orders = [tied.reverse(), *(tied.draw(seed, number) for number in range(SETTLEMENTS))]
    active = tied.queries
    for start, stop in ((0, FIRST_ORDERS), (FIRST_ORDERS, len(orders))):
        if start and len(active):
            active = np.asarray((high - low > SAME).any(axis=(0, 1)))
        index = np.flatnonzero(active)
        if not len(index):
            break
        part, settled = restrict_ties(tied, orders[start:stop], active)
        for number, values in enumerate(_settled_values(systems, part, settled, measures), start):
            low[..., index] = np.minimum(low[..., index], values)
            high[..., index] = np.maximum(high[..., index], values)
            if number:  # the reversed order is no random one
                total[..., index] += values - given[..., index]
    is_same = high - low <= SAME
    for array in (low, high):
        array[is_same] = given[is_same]
    expected = np.where(is_same, given, total / SETTLEMENTS)
    for least, greatest, mean in zip(low, high, expected, strict=True):
        yield TieSensitivity((greatest > least).sum(axis=1), least, greatest, mean)


def _settled_values(
    systems: Sequence[System],
    tied: TiedRuns,
    settlements: Sequence[Settlement],
    measures: Sequence[Measure],
) -> Iterator[FloatArray]:
    """(T, M, Q): the values under each settlement."""
    queries = len(tied.runs.queries)
    step = max(1, MOST_CANDIDATES // max(len(tied.runs.documents), 1))
    for start in range(0, len(settlements), step):
        some = settlements[start : start + step]
        scores = evaluate_systems(systems, tied.settle(some), measures)
        values = np.stack([each.values for each in scores])
        for number in range(len(some)):
            yield values[..., number * queries : (number + 1) * queries]


def _rank_readers(systems: Mapping[str, System], tied: TiedRuns) -> set[str]:
    """The systems, by name, that the order of ties inside their lists can change at all.

    A fusion of scores alone gives the same scores when every group of ties is turned round.
    """
    turned = tied.settle([tied.reverse()])
    reordered = {each.name for each in tied.lists if each.field == "rerank_ranks"}
    same: dict[object, bool] = {}
    names = set()
    for name, system in systems.items():
        if tied.runs.ties != "trec" or system.stages or reordered & system.reranker_names:
            names.add(name)
            continue
        parts = plain_systems(system, tied.runs), plain_systems(system, turned)
        for (_, plain, part), (_, _, other) in zip(*parts, strict=True):
            key = (id(part), plain.model_dump_json(include={"runs", "dialect", "fusion", "depth"}))
            if key not in same:
                same[key] = _has_same_scores(plain, part, other)
            if not same[key]:
                names.add(name)
    return names


def find_affordable(
    systems: Mapping[str, System],
    tied: TiedRuns,
    measures: Sequence[Measure],
    most: int = MOST_RANKED,
) -> set[str]:
    """The systems, by name, that can be evaluated often: those that the batch engine counts.

    Args:
        systems: Fitted systems.
        tied: The runs and their lists with ties.
        measures: What they are evaluated by.
        most: With so many candidates of queries with ties, or fewer, every system can.
    """
    queries = tied.queries
    if queries[tied.runs.query_index].sum() <= most:
        return set(systems)
    probe = np.zeros(len(queries), dtype=bool)
    probe[np.flatnonzero(queries)[:PROBE]] = True
    part = tied.runs.subset(probe)
    plain = {n: s for n, s in systems.items() if not s.stages}
    scores = evaluate_systems([*plain.values()], part, measures)
    return {
        name
        for name, each in zip(plain, scores, strict=True)
        if each.evaluation_path.startswith("counted")
    }


def _has_same_scores(plain: System, part: AlignedRuns, other: AlignedRuns) -> bool:
    """Whether a plain system fuses two runs to the same candidates with the same scores."""
    runs, others = plain.active_runs(part), plain.active_runs(other)
    if not np.array_equal(runs.documents, others.documents):
        return False
    if not np.array_equal(runs.chunks, others.chunks):  # type: ignore[arg-type]  # both may be None
        return False  # the chunk decides the rerank score
    form = plain.fusion.engine_form(runs)
    is_by_score = isinstance(form, WeightedMean) and not form.reads_ranks
    if is_by_score and np.array_equal(runs.scores, others.scores, equal_nan=True):
        return True
    first, second = (_fused_numbers(plain.fusion, each) for each in (runs, others))
    return np.array_equal(first, second, equal_nan=True)


def _fused_numbers(fusion: Fusion, runs: AlignedRuns) -> FloatArray | IntArray:
    """What the scores of a fusion follow from, where the lists differ in nothing else."""
    form = fusion.engine_form(runs)
    if isinstance(form, RankSum):
        return runs.ranks
    if isinstance(form, WeightedMean):
        return form.features(runs, slice(None))
    return fusion.fuse(runs)


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
        ranked_by_column: Lists whose order is that of a rank column: they have no ties.
        seed: Of the random settlements.
        samples: Whether to draw these; where not, what they would say is unknown.

    Returns:
        By name of the system.
    """
    # Systems that read the same lists have the same ties in these.
    groups: dict[tuple[frozenset[str], frozenset[str]], dict[str, System]] = {}
    for name, system in systems.items():
        rerankers = {name for name in system.reranker_names if runs.spaces.get(name) == "order"}
        key = frozenset(system.base_runs), frozenset(rerankers)
        groups.setdefault(key, {})[name] = system
    results: dict[str, SourceTies] = {}
    for (sources, rerank_lists), members in groups.items():
        view = runs.restrict([name for name in runs.sources if name in sources])
        chosen = (names.difference(ranked_by_column) for names in (sources, rerank_lists))
        tied = find_tied_runs(view, *chosen)
        rest = {}
        for name, system in members.items():
            if not tied.lists:
                results[name] = SourceTies(_unaffected(values[name]), None)
                continue
            exact = single_list_ties(system, runs, measures, ranked_by_column=ranked_by_column)
            if exact is None:
                rest[name] = system
            else:
                results[name] = SourceTies(exact, None)
        readers = _rank_readers(rest, tied) if rest else set()
        for name in rest.keys() - readers:
            results[name] = SourceTies(_unaffected(values[name]), None)
        sampled = {name: system for name, system in rest.items() if name in readers}
        if sampled:
            results |= _sample_systems(sampled, values, tied, measures, seed if samples else None)
    return {name: results[name] for name in systems}


def _unaffected(values: FloatArray) -> TieSensitivity:
    """Nothing depends on the order of ties."""
    copies = (values.copy() for _ in range(3))
    return TieSensitivity(np.zeros(len(values), dtype=np.int64), *copies)


def _sample_systems(
    systems: Mapping[str, System],
    values: Mapping[str, FloatArray],
    tied: TiedRuns,
    measures: Sequence[Measure],
    seed: int | None,
) -> dict[str, SourceTies]:
    """The sampled ranges of systems that read the same lists with ties; unknown without a seed."""
    internal = [m for m, measure in enumerate(measures) if not isinstance(measure, ExternalMeasure)]
    unknown = frozenset(m.name for m in measures if isinstance(m, ExternalMeasure))
    known = [measures[m] for m in internal]
    is_asked = known and seed is not None
    affordable = find_affordable(systems, tied, known) if is_asked else set()
    every = frozenset(measure.name for measure in measures)
    results = {
        name: SourceTies(_unaffected(values[name]), None, every)
        for name in systems.keys() - affordable
    }
    chosen = {name: system for name, system in systems.items() if name in affordable}
    if seed is None or not chosen:
        return results
    own = np.stack([values[name][internal] for name in chosen])
    ranges = _sample_ranges([*chosen.values()], tied, known, own, seed)
    for name, part in zip(chosen, ranges, strict=True):
        given = _unaffected(values[name])
        affected = given.affected.copy()
        extremes = np.stack([given.minimum, given.maximum, given.expected])
        affected[internal] = part.affected
        is_changed = part.maximum > part.minimum
        for row, settled in zip(extremes, (part.minimum, part.maximum, part.expected), strict=True):
            row[internal] = np.where(is_changed, settled, row[internal])
        results[name] = SourceTies(TieSensitivity(affected, *extremes), SETTLEMENTS, unknown)
    return results
