"""The range of values over random settlements of the ties inside the sources of a system."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.ordering import FloatArray
from fusion_bench.data.records import ScoreSpace
from fusion_bench.evaluation.ranking.plain_systems import plain_systems
from fusion_bench.evaluation.scores import evaluate_systems
from fusion_bench.evaluation.source_ties.settled_runs import Settlement, TiedRuns, restrict_ties
from fusion_bench.experiment.system import System
from fusion_bench.measures import Measure, TieSensitivity

#: Random settlements of every query whose value some settlement changes.
SETTLEMENTS: Final = 200
#: A query whose values none of the first ones changes is settled no further.
FIRST_SETTLEMENTS: Final = 10
#: A system that the batch engine cannot count is evaluated up to so many tied candidates.
MOST_RANKED: Final = 5_000
#: Queries that show how a system is evaluated.
PROBE: Final = 3
#: Values that differ by less are the same, computed on another path.
SAME: Final = 1e-12
#: Candidates that are evaluated at once, over all settlements.
MOST_CANDIDATES: Final = 1 << 19


@dataclass(frozen=True, eq=False)
class SampledRange:
    """What the settlements made of the values of T systems.

    Attributes:
        minimum: (T, M, Q): least value, over the given order too.
        maximum: (T, M, Q): greatest value.
        expected: (T, M, Q): mean over the random settlements.
    """

    minimum: FloatArray
    maximum: FloatArray
    expected: FloatArray

    def tie_sensitivity(self, t: int) -> TieSensitivity:
        """That of one system."""
        low, high = self.minimum[t], self.maximum[t]
        affected = (high > low).sum(axis=1)
        return TieSensitivity(affected, low, high, self.expected[t])


def sample_ranges(
    systems: Sequence[System],
    tied: TiedRuns,
    measures: Sequence[Measure],
    *,
    spaces: Mapping[str, ScoreSpace],
    seed: int,
    settlements: int = SETTLEMENTS,
    first: int = FIRST_SETTLEMENTS,
) -> SampledRange:
    """Evaluate systems on random settlements of the ties inside their lists.

    Args:
        systems: T systems, fitted; they stay as they were fitted.
        tied: The runs and their lists with ties.
        measures: M measures; none of ir_measures.
        spaces: Score space of each rerank list.
        seed: Of the settlements.
        settlements: How many.
        first: After how many a query with unchanged values is left out.
    """
    given = np.stack(
        [s.values for s in evaluate_systems(systems, tied.runs, measures, spaces=spaces)]
    )
    low, high, total = given.copy(), given.copy(), given * settlements
    draws = [tied.draw(seed, number) for number in range(settlements)]
    active = tied.queries
    for start, stop in ((0, first), (first, settlements)):
        if start and len(active):
            active = np.asarray((high - low > SAME).any(axis=(0, 1)))
        index = np.flatnonzero(active)
        if not len(index):
            break
        part, settled = restrict_ties(tied, draws[start:stop], active)
        for values in _settled_values(systems, part, settled, measures, spaces):
            low[..., index] = np.minimum(low[..., index], values)
            high[..., index] = np.maximum(high[..., index], values)
            total[..., index] += values - given[..., index]
    is_same = high - low <= SAME
    for array in (low, high):
        array[is_same] = given[is_same]
    return SampledRange(low, high, np.where(is_same, given, total / settlements))


def _settled_values(
    systems: Sequence[System],
    tied: TiedRuns,
    settlements: Sequence[Settlement],
    measures: Sequence[Measure],
    spaces: Mapping[str, ScoreSpace],
) -> Iterator[FloatArray]:
    """(T, M, Q): the values under each settlement."""
    queries = len(tied.runs.queries)
    step = max(1, MOST_CANDIDATES // max(len(tied.runs.documents), 1))
    for start in range(0, len(settlements), step):
        some = settlements[start : start + step]
        scores = evaluate_systems(systems, tied.settle(some), measures, spaces=spaces)
        values = np.stack([each.values for each in scores])
        for number in range(len(some)):
            yield values[..., number * queries : (number + 1) * queries]


def rank_readers(
    systems: Mapping[str, System], tied: TiedRuns, spaces: Mapping[str, ScoreSpace]
) -> set[str]:
    """The systems, by name, that the order of ties inside their lists can change at all.

    A fusion of scores alone gives the same scores when every group of ties is turned round.
    """
    turned = tied.settle([tied.reverse()])
    reordered = {each.name for each in tied.lists if each.field == "rerank_ranks"}
    same: dict[object, bool] = {}
    names = set()
    for name, system in systems.items():
        is_composed = bool(system.stages) or system.policy is not None
        if tied.runs.ties != "trec" or is_composed or reordered & system.reranker_names:
            names.add(name)
            continue
        parts = plain_systems(system, tied.runs, spaces), plain_systems(system, turned, spaces)
        for (_, plain, part), (_, _, other) in zip(*parts, strict=True):
            key = (id(part), plain.model_dump_json(include={"runs", "fusion", "depth"}))
            if key not in same:
                same[key] = _has_same_scores(plain, part, other)
            if not same[key]:
                names.add(name)
    return names


def find_affordable(
    systems: Mapping[str, System],
    tied: TiedRuns,
    measures: Sequence[Measure],
    spaces: Mapping[str, ScoreSpace],
    most: int = MOST_RANKED,
) -> set[str]:
    """The systems, by name, that can be evaluated often: those that the batch engine counts.

    Args:
        systems: Fitted systems.
        tied: The runs and their lists with ties.
        measures: What they are evaluated by.
        spaces: Score space of each rerank list.
        most: With so many candidates of queries with ties, or fewer, every system can.
    """
    queries = tied.queries
    if queries[tied.runs.query_index].sum() <= most:
        return set(systems)
    probe = np.zeros(len(queries), dtype=bool)
    probe[np.flatnonzero(queries)[:PROBE]] = True
    part = tied.runs.subset(probe)
    plain = {n: s for n, s in systems.items() if not s.stages and s.policy is None}
    scores = evaluate_systems([*plain.values()], part, measures, spaces=spaces)
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
    return bool(np.array_equal(plain.fusion.fuse(runs), plain.fusion.fuse(others)))
