"""A uniform sample covers the space evenly, and only the space."""

from __future__ import annotations

import numpy as np
import pytest

from fusion_bench.config.parameters import Parameter, choice, integer, real
from fusion_bench.tune.sensitivity import sample_uniformly


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


def test_the_seed_repeats_a_sample() -> None:
    space = [real("x", 0.0, 1.0), integer("n", 1, 5)]
    assert sample_uniformly(space, 20, seed=3) == sample_uniformly(space, 20, seed=3)
    assert sample_uniformly(space, 20, seed=3) != sample_uniformly(space, 20, seed=4)


def test_conditional_parameters_only_where_their_condition_holds() -> None:
    space = [choice("m", "a", "b"), real("x", 0.0, 1.0).add_condition("m", "a")]
    found = sample_uniformly(space, 100, seed=0)
    assert all(("x" in params) == (params["m"] == "a") for params in found)
    assert {params["m"] for params in found} == {"a", "b"}
