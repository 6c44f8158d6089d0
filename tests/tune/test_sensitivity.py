"""Importance, and the uniform sample that measures it."""

import math
from collections.abc import Sequence

import numpy as np
import pytest

from fusion_bench.config.parameters import Parameter, Params, choice, integer, real
from fusion_bench.tune.search import Trial
from fusion_bench.tune.sensitivity import parameter_importances, sample_uniformly

SPACE = (real("a", 0.0, 1.0), real("b", 0.0, 1.0), choice("c", "x", "y"))


def importances(
    space: Sequence[Parameter], trials: Sequence[Params], values: Sequence[float]
) -> dict[str, float]:
    pairs = enumerate(zip(trials, values, strict=True))
    tried = [Trial(n, params, value, "sampler") for n, (params, value) in pairs]
    return {found.path: found.share for found in parameter_importances(space, tried)}


def worth(params: Params) -> float:
    a, b = params["a"], params["b"]
    assert isinstance(a, float)
    assert isinstance(b, float)
    return 1 - abs(a - 0.3) + 0.001 * b


def test_what_decides_is_important() -> None:
    trials = sample_uniformly(SPACE, 200, seed=0)
    found = importances(SPACE, trials, [worth(params) for params in trials])
    assert set(found) == {"a", "b", "c"}
    assert sum(found.values()) == pytest.approx(1)
    assert found["a"] > 0.8


def test_trials_that_failed_or_lie_outside_the_space_are_left_out() -> None:
    trials = sample_uniformly(SPACE, 100, seed=0)
    values = [worth(params) for params in trials]
    known = importances(SPACE, trials, values)
    strange: list[Params] = [*trials, {"a": 5.0, "b": 0.5, "c": "x"}, trials[0]]
    assert importances(SPACE, strange, [*values, 9.0, math.nan]) == known


def test_only_what_takes_part_in_every_trial() -> None:
    space = (*SPACE[:2], real("d", 0.0, 1.0).add_condition("c", "x"), SPACE[2])
    trials = sample_uniformly((SPACE[2], *space[:3]), 100, seed=0)
    assert set(importances(space, trials, [worth(p) for p in trials])) == {"a", "b", "c"}


def test_too_little_to_tell() -> None:
    trials = sample_uniformly(SPACE, 50, seed=0)
    assert importances(SPACE, trials[:10], [worth(p) for p in trials[:10]]) == {}
    assert importances(SPACE, trials, [1.0] * 50) == {}
    one = sample_uniformly(SPACE[:1], 50, seed=0)
    values = [float(params["a"] or 0) for params in one]
    assert importances(SPACE[:1], one, values) == {"a": 1.0}


def drawn(parameter: Parameter, count: int = 4000) -> list[object]:
    return [params[parameter.path] for params in sample_uniformly([parameter], count, seed=1)]


@pytest.mark.parametrize(
    "parameter",
    [
        real("x", 2.0, 6.0),
        real("x", 1.0, 1000.0, log=True),
        real("x", 0.0, 1.0, step=0.1),
        integer("x", 3, 9),
        integer("x", 0, 12, step=4),
        integer("x", 1, 1000, log=True),
        choice("x", "a", "b", "c"),
    ],
)
def test_every_value_is_in_the_space_and_every_part_of_it_is_reached(parameter: Parameter) -> None:
    found = [params[parameter.path] for params in sample_uniformly([parameter], 4000, seed=1)]
    assert all(parameter.contains(value) for value in found)
    places = np.array([parameter.unit_position(value) for value in found])
    assert places.min() < 0.02
    assert places.max() > 0.98
    if parameter.kind == "float" and parameter.step is None:
        counts = np.histogram(places, bins=8, range=(0, 1))[0]
        assert abs(counts - 500).max() < 5 * np.sqrt(500)
    elif not parameter.log:
        counts = np.unique(np.array(found, dtype=object), return_counts=True)[1]
        assert abs(counts - 4000 / len(counts)).max() < 5 * np.sqrt(4000 / len(counts))


def test_conditional_parameters_only_where_their_condition_holds() -> None:
    space = [choice("m", "a", "b"), real("x", 0.0, 1.0).add_condition("m", "a")]
    found = sample_uniformly(space, 100, seed=0)
    assert all(("x" in params) == (params["m"] == "a") for params in found)
    assert {params["m"] for params in found} == {"a", "b"}
