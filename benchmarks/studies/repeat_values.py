"""Search agents that were asked three times, and made repeats of their kind.

The agents are in ``weaviate-agents`` of the parity data; FUSION_BENCH_PARITY_DATA names its folder.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path

import numpy as np

from fusion_bench.data.alignment import align
from fusion_bench.data.ordering import FloatArray
from fusion_bench.experiment.system import System
from fusion_bench.io.load_records import load_qrels, load_run
from fusion_bench.measures import parse_measure
from fusion_bench.ranking.system_scores import evaluate_systems

COLLECTIONS = ("biology", "economics", "robotics")
AGENTS = ("effort-medium", "effort-high", "effort-ultrahigh")
#: It gave the same lists in each repeat.
FIXED = "hybrid-search"
TRIALS = 3
#: What is compared.
KINDS = ("two agents", "an agent and a fixed list", "two agents, the second seen once")
MEASURE = parse_measure("nDCG@10")


@dataclass(frozen=True, eq=False)
class Contrast:
    """Two systems of one collection.

    Attributes:
        name: ``collection: first − second``.
        first: Shape (T, Q): an agent by repeat.
        second: The other agent, or the fixed search, shape (1, Q).
        seen: Repeats that are drawn of the second system.
    """

    name: str
    first: FloatArray
    second: FloatArray
    seen: int = TRIALS

    @property
    def truth(self) -> float:
        """The mean difference over all values."""
        return float(self.first.mean() - self.second.mean())

    @property
    def kind(self) -> str:
        """One of :data:`KINDS`."""
        if len(self.second) == 1:
            return KINDS[1]
        return KINDS[0] if self.seen > 1 else KINDS[2]

    def draw(self, rng: np.random.Generator, trial_sd: float) -> tuple[FloatArray, FloatArray]:
        """New repeats on new queries of the same kind.

        Queries are drawn with replacement. Each repeat of a query is one of its three, drawn
        likewise and independently, so that repeats differ on single queries as they really do. Each
        repeat of an agent is moved on all queries by a normal number.

        Args:
            rng: Source of the random numbers.
            trial_sd: Its standard deviation: the main effect of repeats.
        """
        queries = self.first.shape[1]
        drawn = rng.integers(0, queries, queries)
        sides = []
        for side, most in ((self.first, TRIALS), (self.second, self.seen)):
            count = min(most, len(side))
            repeats = rng.integers(0, len(side), (count, queries))
            moved = trial_sd * rng.standard_normal((count, 1)) * (len(side) > 1)
            sides.append(side[repeats, drawn] + moved)
        return sides[0], sides[1]


def load_agents() -> dict[str, dict[str, FloatArray]]:
    """Collection → system → values of shape (T, Q), T = 3.

    Raises:
        KeyError: FUSION_BENCH_PARITY_DATA is not set.
    """
    root = Path(os.environ["FUSION_BENCH_PARITY_DATA"]) / "weaviate-agents"
    return {name: _load_collection(root / f"bright-{name}") for name in COLLECTIONS}


def _load_collection(folder: Path) -> dict[str, FloatArray]:
    names = [f"{system}-{t + 1}" for system in (FIXED, *AGENTS) for t in range(TRIALS)]
    lists = [load_run(folder / "runs" / f"{name}.trec.gz", name=name) for name in names]
    runs = align(load_qrels(folder / "qrels.txt"), lists)
    systems = [System.model_validate({"name": name, "runs": [name]}) for name in names]
    scores = evaluate_systems(systems, runs, [MEASURE])
    values = np.stack([each.values[0] for each in scores])
    parts = np.split(values, len(AGENTS) + 1)
    return dict(zip((FIXED, *AGENTS), parts, strict=True))


def make_contrasts(agents: dict[str, dict[str, FloatArray]]) -> list[Contrast]:
    """Each pair of agents of a collection, and each agent against the fixed search.

    Last come the pairs once more, with one repeat of the second agent.
    """
    contrasts = []
    for collection, values in agents.items():
        for first, second in (*combinations(AGENTS[::-1], 2), *((name, FIXED) for name in AGENTS)):
            repeats = values[second][:1] if second == FIXED else values[second]
            name = f"{collection}: {first} − {second}"
            contrasts.append(Contrast(name, values[first], repeats))
    once = [replace(each, seen=1) for each in contrasts if each.kind == KINDS[0]]
    return [*contrasts, *once]
