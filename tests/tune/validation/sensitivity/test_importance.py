"""Importance: what decides gets it, what does not, does not."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pytest

from fusion_bench.config.parameters import Parameter, Params, choice, real
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
