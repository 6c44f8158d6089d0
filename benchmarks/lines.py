"""What line searches add to a sampled search, on tuning queries and held out.

From the best of some TPE trials over all that a system declares: exact lines and searched weights
(``polish: true``), and searched lines for every other number as well (``polish: all``).
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.collections import COLLECTIONS, problem
from fusion_bench.config.parameters import Params
from fusion_bench.data.ordering import FloatArray
from fusion_bench.experiment.tune_settings import Settings
from fusion_bench.tune.line_search.line_search import polish
from fusion_bench.tune.search.search import search
from fusion_bench.tune.search.trial_log import Origin, Trial
from fusion_bench.tune.space.objective import Problem
from fusion_bench.tune.validation.splits import hashed_split

V2 = {"method": "rrf_v2", "weights": {"dense": 2}}
RRF = {"method": "rrf"}
#: Collection, fusion, blend without its reranker.
SYSTEMS: Mapping[str, tuple[str, Mapping[str, Any], Mapping[str, Any] | None]] = {
    "attack: rrf_v2, position_aware, 1/rank": (
        "attack",
        V2,
        {"method": "position_aware", "retrieval": "reciprocal_rank"},
    ),
    "attack: rrf, replace, depth 20": ("attack", RRF, {"method": "replace", "depth": 20}),
    "attack: rrf": ("attack", RRF, None),
    "jqara: rrf, linear, fused_min_max": (
        "jqara",
        RRF,
        {"method": "linear", "beta": 0.7, "retrieval": "fused_min_max"},
    ),
    "jqara: rrf, replace, depth 20": ("jqara", RRF, {"method": "replace", "depth": 20}),
    "jqara: rrf": ("jqara", RRF, None),
}


@dataclass
class Climb:
    """A climb from a trial, and how many evaluations it takes."""

    problem: Problem
    evaluations: int = 0

    def __call__(self, start: Trial, *, others: bool) -> Params:
        """Where it ends."""
        values = self._values
        return polish(
            self.problem, start, self._finish, lambda: True, values=values, others=others
        ).params

    def _values(self, trials: Sequence[Params]) -> FloatArray:
        self.evaluations += len(trials)
        return self.problem.values(trials)

    def _finish(self, params: Params, origin: Origin) -> Trial:
        return Trial(1, params, float(self._values([params]).mean()), origin)


def gains(one: Problem, trials: int, salt: int) -> tuple[float, ...]:
    """Gains over the default on the tuning queries, then held out, then evaluations."""
    split = hashed_split(one.runs.groups, one.runs.types, salt=str(salt))
    settings = Settings(trials=trials, polish=False, seed=salt)
    best = search(one, split.tune, settings).best
    climbs = [Climb(one.restricted(split.tune)) for _ in range(2)]
    ends = [climb(best, others=n == 1) for n, climb in enumerate(climbs)]
    default, *found = one.values([one.default, best.params, *ends])
    return (
        *(float((row - default)[split.tune].mean()) for row in found),
        *(float((row - default)[split.held_out].mean()) for row in found),
        *(float(climb.evaluations) for climb in climbs),
    )


def main() -> None:
    """Print the table of docs/tuning.md."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=150)
    parser.add_argument("--salts", type=int, default=4)
    options = parser.parse_args()
    print(
        "| system | numbers | tuning: TPE | + lines | + all | held out: TPE | + lines | + all | "
        "evaluations, lines | all |"
    )
    print("|:--|--:|--:|--:|--:|--:|--:|--:|--:|--:|")
    for name, (collection, fusion, blend) in SYSTEMS.items():
        runs = COLLECTIONS[collection]()
        rest = {"reranker": next(iter(runs.spaces)), "missing": "below"}
        one = problem(runs, fusion=fusion, blend=None if blend is None else {**rest, **blend})
        found = [gains(one, options.trials, salt) for salt in range(1, options.salts + 1)]
        mean = np.mean(found, axis=0)
        shown = " | ".join([*(f"{x:+.4f}" for x in mean[:6]), *(f"{x:.0f}" for x in mean[6:])])
        print(f"| {name} | {len(one.parameters)} | {shown} |", flush=True)


if __name__ == "__main__":
    main()
