"""Exported configurations, read back, on every query of a dataset."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from fusion_bench.data.aligned_runs import AlignedRuns, Ties
from fusion_bench.engines.export import (
    ScoredLists,
    find_changes,
    rank_lists,
    translate_system,
)
from fusion_bench.experiment.dialect import Dialect, Translation
from fusion_bench.experiment.system import System
from tests.engines.reading import read_system

#: The claims that a round trip checks.
EQUAL_ORDER = frozenset({"exact", "rank-equivalent"})

#: Blends, without reranker and depth.
BLENDS: Mapping[str, Mapping[str, Any]] = {
    "replace": {"method": "replace"},
    "linear": {"method": "linear", "beta": 0.7},
    "position_aware": {"method": "position_aware"},
    "by fused rank": {"method": "position_aware", "retrieval": "reciprocal_rank"},
    "fused": {"method": "position_aware", "retrieval": "fused"},
}


class RoundTrip(NamedTuple):
    """One system in one engine."""

    engine: str
    system: str
    fidelity: str
    queries: int
    changed: int
    tied: int


def list_systems(sources: Sequence[str], rerankers: Sequence[str] = ()) -> list[System]:
    """Systems of many kinds over the first sources of a dataset, and its rerank lists."""
    pair, three = list(sources[:2]), list(sources[:3])
    weights = dict(zip(pair, (0.3, 0.7), strict=True))
    cut: dict[str, Any] = {"depth": 50, "top_k": 50}
    kinds: dict[str, tuple[list[str], Any, Mapping[str, Any]]] = {
        "rrf": (three, "rrf", {}),
        "rrf 2": (pair, "rrf", cut),
        "rrf k=10": (pair, {"method": "rrf", "k": 10}, cut),
        "rrf k=61": (three, {"method": "rrf", "k": 61}, {"depth": 30}),
        "rrf weighted": (three, {"method": "rrf", "weights": {three[-1]: 0.5}}, cut),
        "rrf k by source": (pair, {"method": "rrf", "k": {pair[0]: 10}}, cut),
        "rrf three_lists": (three, {"method": "rrf", "normalize": "three_lists"}, cut),
        "rrf_v2": (pair, {"method": "rrf_v2", "weights": weights}, cut),
        "rrf_v2 no bonus": (pair, {"method": "rrf_v2", "bonus": {}, "weights": weights}, cut),
        "convex": (pair, {"method": "convex", "weights": weights}, cut),
        "convex 3": (three, "convex", {}),
        "dbsf": (pair, "dbsf", cut),
        "comb_sum": (pair, {"method": "comb_sum", "normalize": "min_max"}, cut),
        "score skip": (pair, {"method": "weighted_score", "missing": "skip"}, cut),
        "score none": (pair, {"method": "weighted_score", "normalize": "none"}, cut),
        "windows": (pair, "rrf", {"depth": {pair[0]: 20, pair[1]: 40}, "top_k": 60}),
        "by type": (
            pair,
            "rrf",
            {"weights_by_type": {"hybrid": {pair[0]: 0.4, pair[1]: 0.6}}},
        ),
    }
    for reranker in rerankers:
        for name, method in BLENDS.items():
            blend = {"reranker": reranker, "depth": 20, "tail": "drop", **method}
            kinds[f"blend {name}"] = (pair, "rrf", {"blend": blend, **cut})
            kinds[f"v2 blend {name}"] = (pair, "rrf_v2", {"blend": blend, **cut})
    return [System(name, runs, fusion, **more) for name, (runs, fusion, more) in kinds.items()]


class Original:
    """Systems over the lists of a dataset, each ranked once."""

    def __init__(self, runs: AlignedRuns) -> None:
        self.runs = runs
        self.systems = list_systems(runs.sources, [*runs.spaces])
        self._longest = int(np.diff(runs.offsets).max())
        self._lists: dict[tuple[str, Ties | None], ScoredLists] = {}

    def lists(self, system: System, ties: Ties | None = None) -> ScoredLists:
        """The lists of one of the systems, its ties broken by a rule of an engine."""
        key = system.name, ties
        if key not in self._lists:
            self._lists[key] = self.rank(system, ties)
        return self._lists[key]

    def rank(self, system: System, ties: Ties | None = None) -> ScoredLists:
        runs = self.runs.restrict(self.runs.sources, ties=ties)
        return rank_lists(system, runs, self._longest)

    def claims(self, dialect: type[Dialect]) -> Iterator[tuple[System, Translation]]:
        """The systems of which an equal order is claimed, each with its translation."""
        roles = dict(zip(self.runs.sources, self.runs.roles, strict=True))
        for system in self.systems:
            translation = translate_system(dialect, system, roles)
            if translation.fidelity in EQUAL_ORDER:
                yield system, translation

    def round_trips(self, dialect: type[Dialect]) -> Iterator[RoundTrip]:
        """Each system of which an equal order is claimed, written, read back and ranked."""
        for system, translation in self.claims(dialect):
            assert translation.system is not None
            again = read_system(dialect, dialect.write(translation.system).files)
            before = self.lists(system, again.fusion.ties)
            changes = find_changes(before, self.rank(again), dialect.precision)
            yield RoundTrip(
                dialect.name,
                system.name,
                translation.fidelity,
                len(self.runs.queries),
                int(changes.is_changed.sum()),
                int(changes.is_tied.sum()),
            )
