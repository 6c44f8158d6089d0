import math
from typing import Any

import pytest

from fusion_bench.config.parameters import (
    Parameter,
    choice,
    integer,
    real,
    table,
)
from fusion_bench.errors import ConfigError
from fusion_bench.tune.space import merge_parameters


@pytest.mark.parametrize(
    ("broken", "said"),
    [
        ({"kind": "choice"}, "choices must be"),
        ({"kind": "choice", "choices": (1, 1)}, "different values"),
        ({"kind": "float", "low": 0}, "low and high"),
        ({"kind": "float", "low": 2, "high": 1}, "low must not"),
        ({"kind": "float", "low": 0, "high": math.inf}, "low must not"),
        ({"kind": "float", "low": 0, "high": 1, "log": True}, "log needs low"),
        ({"kind": "float", "low": 0, "high": 1, "step": 0}, "step must be"),
        ({"kind": "float", "low": 1, "high": 2, "step": 1, "log": True}, "with no log"),
        ({"kind": "int", "low": 0, "high": 1.5}, "needs whole"),
    ],
)
def test_a_range_that_is_none_is_refused_with_its_path(broken: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=f"^a.b: .*{said}"):
        Parameter("a.b", **broken)


@pytest.mark.parametrize(
    ("one", "inside", "outside"),
    [
        (real("x", 0, 1), [0, 0.3, 1], [-0.1, 1.1, "a", None, True]),
        (real("x", 0, 1, step=0.1), [0, 0.3, 0.7, 1.0], [0.35]),
        (integer("x", 1, 10), [1, 7], [0, 11, 2.5]),
        (integer("x", 1, 10, step=3), [1, 4, 10], [2]),
        (choice("x", "a", None, 1), ["a", None, 1], ["b", True, 0]),
    ],
)
def test_contains_knows_bounds_steps_and_kinds(
    one: Parameter, inside: list[Any], outside: list[Any]
) -> None:
    assert [one.contains(value) for value in inside] == [True] * len(inside)
    assert [one.contains(value) for value in outside] == [False] * len(outside)


def test_places_in_the_unit_interval() -> None:
    assert real("x", 2, 4).unit_position(2.5) == 0.25
    assert real("x", 1, 100, log=True).unit_position(10) == pytest.approx(0.5)
    assert real("x", 3, 3).unit_position(3) == 0
    assert [choice("x", "a", "b", "c").unit_position(v) for v in "abc"] == [0, 0.5, 1]
    assert choice("x", "a").unit_position("a") == 0
    nowhere = [
        choice("x", "a").unit_position("b"),
        real("x", 0, 1).unit_position(None),
        real("x", 0, 1).unit_position("a"),
    ]
    assert all(
        math.isnan(place) for place in [*nowhere, real("x", 1, 2, log=True).unit_position(0)]
    )


def test_conditions_and_tables_of_parameters() -> None:
    one = real("lo", 0, 1).add_condition("method", "a", "b").add_prefix("fusion")
    assert one.path == "fusion.lo"
    assert one.is_active({"fusion.method": "b"})
    assert not one.is_active({"fusion.method": "c"})
    assert not one.is_active({})
    paths = [one.path for one in table("tiers", 2, 1.0, 20)]
    assert paths == ["tiers.1.value", "tiers.1.ranks", "tiers.2.value", "tiers.2.ranks"]


def test_parameters_of_two_methods_are_one_dimension_or_two() -> None:
    found = merge_parameters(
        [integer("k", 1, 9).add_condition("m", "a"), integer("k", 1, 9).add_condition("m", "b")]
    )
    assert found == (integer("k", 1, 9).add_condition("m", "a", "b"),)
    a, b = (
        integer("f.k", 1, 9).add_condition("m", "a"),
        integer("f.k", 1, 5).add_condition("m", "b"),
    )
    assert [one.path for one in merge_parameters([a, b])] == ["f.k", "f(b).k"]
    with pytest.raises(ConfigError, match=r"f\.k: two ranges"):
        merge_parameters([integer("f.k", 1, 9), integer("f.k", 1, 5)])


def test_neat_numbers_stay_inside_and_on_their_steps() -> None:
    free = real("w", 0.12341, 1.98761)
    assert free.round_value(0.7686276) == 0.7686
    assert (free.round_value(0.123411), free.round_value(1.987609)) == (0.12341, 1.98761)
    assert real("w", 0, 1, step=0.25).round_value(0.25) == 0.25
    assert integer("k", 1, 20_000).round_value(12_345) == 12_345
    assert choice("m", "a", None).round_value(None) is None
