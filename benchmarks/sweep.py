"""The cost of a search beyond its sampler, on 6,980 queries × 4 lists × 100 documents.

The sampler alone runs in the same code and receives the same values, with nothing to evaluate. The
table compares CPU time of the process; wall time stands beside it.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from benchmarks.cases import SIZES, make_case
from fusion_bench.config.parameters import Params
from fusion_bench.data.ordering import FloatArray
from fusion_bench.experiment.settings import ParameterRange, SearchSettings
from fusion_bench.experiment.system import System
from fusion_bench.io.fingerprints import Fingerprint
from fusion_bench.measures import parse_measure
from fusion_bench.tune.objective import TuningObjective
from fusion_bench.tune.search import SearchResult, run_search
from fusion_bench.tune.space import build_search_space

#: The tuned parameters beside the weights: a trial with a new k takes longer.
SPACES: dict[str, dict[str, ParameterRange]] = {
    "weights": {},
    "k and weights": {"fusion.k": ParameterRange(low=1, high=1000, log=True)},
}


def make_objective(size: str, space: str) -> TuningObjective:
    """RRF of four lists with a weight each."""
    case = make_case(SIZES[size])
    names = [run.name for run in case.runs]
    system = System.model_validate({"name": "rrf", "runs": names, "fusion": {"method": "rrf"}})
    weights = {f"fusion.weights.{name}": ParameterRange(low=0.1, high=2) for name in names}
    roles = {run.name: run.roles for run in case.runs}
    ranges = {**SPACES[space], **weights}
    parameters = build_search_space(system, ranges, roles)
    return TuningObjective(
        system,
        case.aligned,
        parse_measure("nDCG@10"),
        parameters,
        contents=Fingerprint({}),
    )


@dataclass(frozen=True, eq=False)
class ReplacedObjective(TuningObjective):
    """An objective whose values come from a function."""

    call: Callable[[Sequence[Params]], FloatArray] = field(kw_only=True)

    def evaluate_params(self, trials: Sequence[Params]) -> FloatArray:
        """What the function returns."""
        return self.call(trials)


def replace_values(
    objective: TuningObjective, call: Callable[[Sequence[Params]], FloatArray]
) -> TuningObjective:
    """The objective with its values from a function."""
    return ReplacedObjective(
        objective.system,
        objective.runs,
        objective.measure,
        objective.parameters,
        contents=objective.contents,
        call=call,
    )


class Clock:
    """Sums the wall and CPU seconds of the calls of a function."""

    def __init__(self, call: Callable[[Sequence[Params]], FloatArray]) -> None:
        self._call = call
        self.cpu = self.wall = 0.0

    def __call__(self, trials: Sequence[Params]) -> FloatArray:
        """Call the function."""
        cpu, wall = time.process_time(), time.perf_counter()
        values = self._call(trials)
        self.cpu += time.process_time() - cpu
        self.wall += time.perf_counter() - wall
        return values


def time_search(search: Callable[[], SearchResult]) -> tuple[SearchResult, float, float]:
    """The result of a search, its CPU and its wall seconds."""
    cpu, wall = time.process_time(), time.perf_counter()
    study = search()
    return study, time.process_time() - cpu, time.perf_counter() - wall


def measure_sweep(objective: TuningObjective, settings: SearchSettings) -> tuple[float, ...]:
    """CPU and wall seconds of the search, of the sampler alone, and CPU seconds of evaluating."""
    keep = np.ones(len(objective.runs.queries), dtype=bool)
    evaluate = Clock(objective.evaluate_params)
    with TemporaryDirectory() as folder:
        study, cpu, wall = time_search(
            lambda: run_search(
                replace_values(objective, evaluate), keep, settings, log=Path(folder) / "log"
            )
        )
    values = {repr(sorted(t.params.items())): t.value for t in study.trials}

    def instant(trials: Sequence[Params]) -> FloatArray:
        return np.array([[values[repr(sorted(params.items()))]] for params in trials])

    _, bare_cpu, bare_wall = time_search(
        lambda: run_search(replace_values(objective, instant), keep, settings)
    )
    return cpu, wall, bare_cpu, bare_wall, evaluate.cpu


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("samplers", nargs="*", default=["tpe", "cmaes", "qmc"])
    parser.add_argument("--size", default="many", choices=[*SIZES])
    parser.add_argument("--trials", type=int, default=1000)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--toy", action="store_true", help="as --size toy --trials 8 --batch 4")
    options = parser.parse_args(arguments)
    if options.toy:
        options.size, options.trials, options.batch = "toy", 8, 4
    print(
        f"{'space':14} {'sampler':8} {'sweep CPU':>10} {'wall':>8} {'bare CPU':>9} {'wall':>8} "
        f"{'rest':>6} {'× bare':>7} {'ms/trial':>9}"
    )
    for space in SPACES:
        objective = make_objective(options.size, space)
        for sampler in options.samplers:
            settings = SearchSettings(trials=options.trials, sampler=sampler, batch=options.batch)
            cpu, wall, bare_cpu, bare_wall, evaluating = measure_sweep(objective, settings)
            print(
                f"{space:14} {sampler:8} {cpu:9.2f}s {wall:7.2f}s {bare_cpu:8.2f}s "
                f"{bare_wall:7.2f}s {1 - bare_cpu / cpu:6.1%} {cpu / bare_cpu:7.2f} "
                f"{1000 * evaluating / options.trials:9.2f}"
            )


if __name__ == "__main__":
    main()
