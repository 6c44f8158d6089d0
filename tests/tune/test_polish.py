from __future__ import annotations

import numpy as np

from fusion_bench.space import Params
from fusion_bench.tune.log import Trial
from fusion_bench.tune.polish import polish
from fusion_bench.tune.problem import Problem
from fusion_bench.tune.search import search
from fusion_bench.tuning import Settings
from tests.tune.cases import aligned
from tests.tune.problems import BLEND, problem, system

WEIGHTS = {"fusion.weights": "own"}
RUNS = aligned(60, depth=20)
KEEP = np.ones(60, dtype=bool)


def climb(one: Problem, measure_again: list[Params]) -> Trial:
    def evaluate(params: Params) -> Trial:
        measure_again.append(params)
        return Trial(1, params, float(one.values([params])[0].mean()), "polish")

    start = Trial(0, one.default, float(one.values([one.default])[0].mean()), "default")
    return polish(one, start, evaluate, lambda: True)


def test_no_place_on_a_fine_grid_is_better_along_any_line() -> None:
    one = problem(ranges=WEIGHTS, runs=RUNS)
    best = climb(one, [])
    assert best.value > one.values([one.default])[0].mean()
    for path in ("fusion.weights.good", "fusion.weights.bad"):
        grid: list[Params] = [{**best.params, path: w} for w in np.linspace(0, 2, 401).tolist()]
        assert one.values(grid).mean(axis=1).max() <= best.value + 1e-12


def test_it_takes_few_evaluations() -> None:
    evaluated: list[Params] = []
    climb(problem(system({"method": "rrf_v2"}, {**BLEND, "beta": 0.01}), runs=RUNS), evaluated)
    assert 1 <= len(evaluated) <= 12


def test_a_source_that_only_does_harm_is_switched_off() -> None:
    only_good = problem(system(runs=["good"]), runs=RUNS)
    alone = only_good.values([only_good.default])[0].mean()
    best = climb(problem(ranges=WEIGHTS, runs=RUNS), [])
    assert best.value >= alone


def test_measures_that_cannot_step_are_left_alone() -> None:
    evaluated: list[Params] = []
    one = problem(ranges=WEIGHTS, runs=RUNS, measure="AP@10")
    assert climb(one, evaluated).origin == "default"
    assert evaluated == []


def test_its_results_are_trials_of_the_search() -> None:
    one = problem(ranges=WEIGHTS, runs=RUNS)
    rough = search(one, KEEP, Settings(trials=4, polish=False))
    study = search(one, KEEP, Settings(trials=4))
    assert study.trials[:4] == rough.trials
    assert {trial.origin for trial in study.trials[4:]} == {"polish"}
    assert study.best.value > rough.best.value
    assert study.trials == search(one, KEEP, Settings(trials=4)).trials


def test_it_ends_when_time_is_up() -> None:
    one = problem(ranges=WEIGHTS, runs=RUNS)
    start = Trial(0, one.default, 0.0, "default")
    assert (
        polish(one, start, lambda params: Trial(1, params, 1.0, "polish"), lambda: False) is start
    )
