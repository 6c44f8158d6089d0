from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from fusion_bench.config.parameters import Params
from fusion_bench.data.ordering import FloatArray
from fusion_bench.experiment.system import System
from fusion_bench.experiment.tune_settings import Settings
from fusion_bench.tune.line_search.grid import MOST
from fusion_bench.tune.line_search.line_search import polish
from fusion_bench.tune.search.search import search
from fusion_bench.tune.search.trial_log import Origin, Trial
from fusion_bench.tune.space.objective import Problem
from tests.tune.cases import aligned
from tests.tune.problems import BLEND, problem, system

WEIGHTS = {"fusion.weights": "own"}
RUNS = aligned(60, depth=20)
KEEP = np.ones(60, dtype=bool)


def climb(one: Problem, evaluated: list[Params], *, others: bool = False) -> Trial:
    """Polish from the default, and keep what is evaluated on the way."""

    def finish(params: Params, origin: Origin) -> Trial:
        return Trial(1, params, float(values([params])[0].mean()), origin)

    def values(trials: Sequence[Params]) -> FloatArray:
        evaluated.extend(trials)
        return one.values(trials)

    start = Trial(0, one.default, float(one.values([one.default])[0].mean()), "default")
    return polish(one, start, finish, lambda: True, values=values, others=others)


def test_no_place_on_a_fine_grid_is_better_along_any_line() -> None:
    one = problem(ranges=WEIGHTS, runs=RUNS)
    best = climb(one, [])
    assert best.value > one.values([one.default])[0].mean()
    for path in ("fusion.weights.good", "fusion.weights.bad"):
        grid: list[Params] = [{**best.params, path: w} for w in np.linspace(0, 2, 401).tolist()]
        assert one.values(grid).mean(axis=1).max() <= best.value + 1e-12


def test_it_takes_few_evaluations() -> None:
    evaluated: list[Params] = []
    climb(problem(system({"method": "rrf_v2"}, {**BLEND, "depth": 20}), runs=RUNS), evaluated)
    assert 1 <= len(evaluated) <= 12


def test_a_source_that_only_does_harm_is_switched_off() -> None:
    only_good = problem(system(runs=["good"]), runs=RUNS)
    alone = only_good.values([only_good.default])[0].mean()
    best = climb(problem(ranges=WEIGHTS, runs=RUNS), [])
    assert best.value >= alone


BY_RANK = {**BLEND, "method": "position_aware", "retrieval": "reciprocal_rank", "depth": 12}
WEIGHT = {"low": 0, "high": 2}


@pytest.mark.parametrize(
    ("default", "path", "own", "measure"),
    [
        (system(blend=BY_RANK), "fusion.weights.bad", WEIGHT, "nDCG@10"),
        (system(), "fusion.weights.bad", WEIGHT, "AP@10"),
        (system(), "fusion.weights.bad", {**WEIGHT, "step": 0.1}, "nDCG@10"),
        (system(), "fusion.k", {"low": 1, "high": 1000, "log": True}, "nDCG@10"),
        (system(), "fusion.k", {"low": 1, "high": 1000, "int": True, "log": True}, "nDCG@10"),
        (system(blend=BY_RANK), "blend.depth", {"low": 1, "high": 20, "int": True}, "nDCG@10"),
        (system(blend=BY_RANK), "blend.min_score", {"low": 0, "high": 0.5}, "nDCG@10"),
        (system(), "min_relevance", {"low": 0, "high": 0.03}, "nDCG@10"),
        (system(), "depth.bad", {"low": 3, "high": 3, "int": True}, "nDCG@10"),
    ],
)
def test_a_searched_line_takes_at_most_40_evaluations(
    default: System, path: str, own: dict[str, object], measure: str
) -> None:
    one = problem(default, {path: own}, runs=RUNS, measure=measure)
    evaluated: list[Params] = []
    best = climb(one, evaluated, others=True)
    tried = {params[path] for params in evaluated}
    assert 1 <= len(evaluated) <= MOST == 40
    assert all(one.parameters[0].contains(value) for value in tried)
    values = one.values(evaluated).mean(axis=1)
    assert best.value == pytest.approx(max(values.max(), one.values([one.default]).mean()))
    assert best.origin == ("default" if best.params == one.default else "searched")


@pytest.mark.parametrize("high", [15, 2, 1])
def test_a_short_range_is_gone_through_wholly(high: int) -> None:
    one = problem(ranges={"fusion.k": {"low": 1, "high": high, "int": True}}, runs=RUNS)
    every = one.values([{"fusion.k": k} for k in range(1, high + 1)]).mean(axis=1)
    default = float(one.values([one.default]).mean())
    assert climb(one, [], others=True).value == max(every.max(), default)


def test_an_exact_line_takes_two_evaluations_and_a_types_own_three() -> None:
    for fusion in ({"method": "rrf"}, {"method": "weighted_score", "missing": "skip"}):
        evaluated: list[Params] = []
        climb(problem(system(fusion), {"fusion.weights.bad": WEIGHT}, runs=RUNS), evaluated)
        assert 1 <= len(evaluated) <= 2
    types = [None, "a"] * 30
    weight = {"bad": {"by_query_type": {"a": 0.1, "hybrid": 1.0}}}
    typed = system({"method": "rrf", "weights": weight})
    path = "by_query_type.hybrid.fusion.weights.bad"
    evaluated = []
    best = climb(problem(typed, {path: WEIGHT}, runs=aligned(60, types=types)), evaluated)
    assert best.origin == "polish"
    assert 1 <= len(evaluated) <= 2  # and one where it stands, on the type's queries alone


def test_a_type_is_polished_as_if_it_were_alone() -> None:
    types = ["a", None] * 30
    runs = aligned(60, depth=20, types=types)
    weight = {"bad": {"by_query_type": {"a": 1.0, "hybrid": 1.0}}}
    for blend in ("none", BY_RANK):
        typed = system({"method": "rrf", "weights": weight}, blend)
        path = "by_query_type.a.fusion.weights.bad"
        together = climb(problem(typed, {path: WEIGHT}, runs=runs), [])
        alone = runs.subset(np.array([one == "a" for one in types]))
        plain = climb(problem(system(blend=blend), {"fusion.weights.bad": WEIGHT}, runs=alone), [])
        assert plain.origin == together.origin != "default"
        assert together.params[path] == plain.params["fusion.weights.bad"]


def test_a_type_that_no_query_has_is_left_alone() -> None:
    weight = {"bad": {"by_query_type": {"a": 1.0, "hybrid": 1.0}}}
    typed = system({"method": "rrf", "weights": weight})
    path = "by_query_type.a.fusion.weights.bad"
    evaluated: list[Params] = []
    climb(problem(typed, {path: WEIGHT}, runs=RUNS), evaluated)
    assert evaluated == []


def test_only_weights_are_searched_where_nothing_else_is_asked_for() -> None:
    evaluated: list[Params] = []
    one = problem(system({"method": "rrf_v2"}, BY_RANK), runs=RUNS, measure="AP@10")
    climb(one, evaluated)
    moved = {path for p in evaluated for path in p if p[path] != one.default[path]}
    assert moved == {"fusion.weights.good", "fusion.weights.bad"}


def test_what_cannot_be_computed_is_never_better() -> None:
    ranges = {"fusion.weights.good": WEIGHT, "fusion.weights.bad": {"low": 0, "high": 0}}
    evaluated: list[Params] = []
    best = climb(problem(ranges=ranges, runs=RUNS, measure="AP@10"), evaluated)
    assert any(set(params.values()) == {0.0} for params in evaluated)
    assert np.isfinite(best.value)


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
    finish = lambda params, origin: Trial(1, params, 1.0, origin)  # noqa: E731
    assert polish(one, start, finish, lambda: False) is start
