from __future__ import annotations

from typing import Any

import pytest

from fusion_bench.config.parameters import Parameter, choice, integer, real
from fusion_bench.errors import ConfigError
from fusion_bench.experiment.settings import ParameterRange
from fusion_bench.tune.space import build_search_space, declared_parameters
from tests.tune.problems import BLEND, problem, roles_of, system

V2 = system({"method": "rrf_v2"}, {**BLEND, "method": "position_aware"})


def paths(parameters: tuple[Parameter, ...]) -> list[str]:
    return [one.path for one in parameters]


def test_the_methods_declare_what_can_be_tuned() -> None:
    assert paths(declared_parameters(V2)) == [
        "fusion.k",
        "fusion.weights.good",
        "fusion.weights.bad",
        "fusion.bonus.1.value",
        "fusion.bonus.1.ranks",
        "fusion.bonus.2.value",
        "fusion.bonus.2.ranks",
        "blend.tiers.1.value",
        "blend.tiers.1.ranks",
        "blend.tiers.2.value",
        "blend.tiers.2.ranks",
        "blend.rest",
        "blend.retrieval",
    ]


def test_one_source_has_no_weight_to_tune() -> None:
    assert paths(declared_parameters(system(runs=["good"]))) == ["fusion.k"]


def test_k_may_be_tuned_for_each_source() -> None:
    default = system({"method": "rrf", "k": {"keyword": 9}})
    assert paths(declared_parameters(default))[:2] == ["fusion.k.good", "fusion.k.bad"]
    given = problem(default, {"fusion.k": "own"})
    assert given.default_params == {"fusion.k.good": 60, "fusion.k.bad": 9}
    explicit = problem(system(), {"fusion.k.bad": {"low": 1, "high": 9, "int": True}})
    assert explicit.default_params == {"fusion.k.bad": 60}


@pytest.mark.parametrize("prefix", ["", "by_query_type.hybrid."])
def test_a_number_for_all_sources_excludes_that_of_one(prefix: str) -> None:
    by_type = {"hybrid": {"fusion": "rrf"}} if prefix else None
    ranges = {
        f"{prefix}{path}": {"low": 1, "high": 9, "int": True}
        for path in ("fusion.k", "fusion.k.bad")
    }
    with pytest.raises(ConfigError, match=rf"{prefix}fusion\.k sets {prefix}fusion\.k\.bad too"):
        problem(system(by_query_type=by_type), ranges)


def test_a_default_lies_in_its_own_space() -> None:
    for default in (
        system(),
        V2,
        system({"method": "rrf", "k": {"keyword": 9}}),
        system("weighted_score", BLEND),
    ):
        one = problem(default)
        assert one.contains(one.default_params), default


def test_ranges_narrow_the_space_and_own_takes_over_what_is_declared() -> None:
    one = problem(V2, {"fusion.k": {"low": 1, "high": 9, "int": True}, "fusion.weights": "own"})
    assert one.parameters == (
        integer("fusion.k", 1, 9),
        real("fusion.weights.good", 0, 2),
        real("fusion.weights.bad", 0, 2),
    )


def test_a_choice_of_methods_is_one_conditional_space() -> None:
    both = problem(
        V2,
        {
            "fusion.method": {"choices": ["rrf", "rrf_v2", "weighted_score"]},
            "blend.method": {"choices": ["none", "linear"]},
        },
    )
    found = {one.path: one for one in both.parameters}
    assert found["fusion.k"].when == (("fusion.method", ("rrf", "rrf_v2")),)
    assert found["fusion.weights.good"].when == ()  # whatever the method
    assert found["fusion.normalize.method"].when == (("fusion.method", ("weighted_score",)),)
    assert found["blend.beta"].when == (("blend.method", ("linear",)),)
    assert "fusion.missing" not in both.default_params


def test_weights_by_type_take_the_place_of_weights() -> None:
    default = system(weights_by_type={"hybrid": {"good": 0.5, "bad": 0.5}})
    assert paths(declared_parameters(default)) == [
        "fusion.k",
        "weights_by_type.hybrid.good",
        "weights_by_type.hybrid.bad",
    ]


def test_parameters_stand_after_those_they_depend_on() -> None:
    one = problem(
        V2,
        {
            "fusion.k": {"low": 1, "high": 9, "when": {"fusion.bonus_unit": "relative"}},
            "fusion.bonus_unit": {"choices": ["absolute", "relative"]},
        },
    )
    assert one.parameters == (
        choice("fusion.bonus_unit", "absolute", "relative"),
        real("fusion.k", 1, 9).add_condition("fusion.bonus_unit", "relative"),
    )
    assert dict(one.default_params) == {"fusion.bonus_unit": "absolute"}


@pytest.mark.parametrize(
    ("ranges", "said"),
    [
        ({}, "nothing to tune"),
        ({"fusion.kk": {"low": 0, "high": 1}}, "fusion.kk: .*unknown key 'kk'"),
        ({"fusion.kk": "own"}, "nothing is declared there .declared: fusion.k, "),
        ({"fusion.k": {"choices": [1, 2], "low": 1}}, "either choices, or low and high"),
        ({"fusion.k": {"low": 1, "high": 2, "when": {"a": 1}}}, "when: 'a' is not a parameter"),
        (
            {
                "fusion.k": {"low": 1, "high": 2, "when": {"top_k": 1}},
                "top_k": {"low": 1, "high": 2, "int": True, "when": {"fusion.k": [1, 2]}},
            },
            "conditions go round in a circle",
        ),
    ],
)
def test_a_broken_space_is_refused(ranges: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        problem(V2, ranges)


def test_what_the_seeds_suggest_is_tried_alone_and_together() -> None:
    one = problem(V2)
    changed = [
        {path: value for path, value in params.items() if value != one.default_params[path]}
        for params in one.preset_params
    ]
    assert changed == [
        {"fusion.bonus.1.value": 0.1},
        {"blend.tiers.1.value": 0.85},
        {"fusion.bonus.1.value": 0.1, "blend.tiers.1.value": 0.85},
    ]
    narrow = problem(V2, {"fusion.bonus.1.value": {"low": 0, "high": 0.07}})
    assert narrow.preset_params == ()


def test_a_reranker_is_needed_to_search_blends() -> None:
    one = system()
    with pytest.raises(ConfigError, match="blend with a reranker"):
        build_search_space(
            one,
            {"blend.method": ParameterRange(choices=("none", "linear"))},
            roles_of(problem().runs),
        )


def test_a_system_by_query_type_is_tuned_type_by_type() -> None:
    by_type = {"by_query_type": {"local": 0.5, "hybrid": 2.0}}
    default = system({"method": "rrf", "k": 20, "weights": {"good": by_type}})
    path = "by_query_type.local.fusion.weights.good"
    one = problem(default)
    assert paths(one.parameters) == [
        f"by_query_type.{name}.fusion.{number}"
        for name in ("hybrid", "local")
        for number in ("k", "weights.good", "weights.bad")
    ]
    assert one.default_params[path] == 0.5
    assert one.contains(one.default_params)
    changed = one.build_system({**one.default_params, path: 0.25})
    assert changed.of_class("local").fusion.model_dump()["weights"] == {"good": 0.25, "bad": 1.0}
    assert (
        changed.of_class("hybrid").fusion
        == one.build_system({**one.default_params, "by_query_type.local.fusion.k": 3})
        .of_class("hybrid")
        .fusion
    )
    with pytest.raises(ConfigError, match=r"by_query_type\.hybrid\.fusion\.k"):
        problem(default, {"fusion.k": {"low": 1, "high": 9}})
    with pytest.raises(ConfigError, match=r"type .*hybrid, local"):
        problem(default, {"by_query_type.global.fusion.k": {"low": 1, "high": 9}})
