"""The search space: its paths, conditions, and what they set."""

from typing import Any

import pytest

from fusion_bench.config.parameters import Parameter, Params, choice, integer, real
from fusion_bench.data.alignment import align
from fusion_bench.data.qrels import Qrels
from fusion_bench.data.run import Run
from fusion_bench.errors import ConfigError
from fusion_bench.experiment.settings import ParameterRange, TuneSettings
from fusion_bench.experiment.system import System
from fusion_bench.tune.space import (
    ABSENT,
    apply_parameters,
    build_search_space,
    declared_parameters,
    read_parameter,
)
from tests.tune.cases import aligned
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
        ({"fusion.kk": "own"}, "nothing is declared"),
        ({"fusion.k": {"choices": [1, 2], "low": 1}}, "either choices, or"),
        ({"fusion.k": {"low": 1, "high": 2, "when": {"a": 1}}}, "'a' is not a parameter"),
        (
            {
                "fusion.k": {"low": 1, "high": 2, "when": {"top_k": 1}},
                "top_k": {"low": 1, "high": 2, "int": True, "when": {"fusion.k": [1, 2]}},
            },
            "in a circle",
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


ROLES = roles_of(aligned(4))
PER_SOURCE = system({"method": "rrf", "k": {"keyword": 9}})


@pytest.mark.parametrize(
    ("start", "params", "where", "expected"),
    [
        (V2, {"fusion.k": 7}, ("fusion", "k"), 7),
        (V2, {"blend.tiers.1.value": 0.9}, ("blend", "tiers"), {3: 0.9, 10: 0.6}),
        (V2, {"blend.tiers.1.ranks": 5}, ("blend", "tiers"), {5: 0.75, 12: 0.6}),
        (V2, {"blend.tiers.2.ranks": 1}, ("blend", "tiers"), {3: 0.75, 4: 0.6}),
        (V2, {"fusion.bonus.2.value": 0.03}, ("fusion", "bonus"), {1: 0.05, 3: 0.03}),
        (V2, {"fusion.weights.bad": 0.5}, ("fusion", "weights"), {"good": 2.0, "bad": 0.5}),
        (V2, {"fusion.weights.keyword": 3}, ("fusion", "weights"), {"good": 2.0, "bad": 3.0}),
        (V2, {"fusion.k.bad": 5}, ("fusion", "k"), {"good": 60, "bad": 5}),
        (V2, {"fusion.k.keyword": 5}, ("fusion", "k"), {"good": 60, "bad": 5}),
        (PER_SOURCE, {"fusion.k.good": 5}, ("fusion", "k"), {"good": 5, "bad": 9}),
        (PER_SOURCE, {"fusion.k": 5}, ("fusion", "k"), 5),
        (V2, {"fusion.method": "rrf", "fusion.k.bad": 5}, ("fusion", "k"), {"good": 60, "bad": 5}),
        (V2, {"blend.min_score": 0.2}, ("blend", "min_score"), 0.2),
        (V2, {"depth": 3}, ("depth",), 3),
        (V2, {"depth.bad": 3}, ("depth",), {"bad": 3}),
        (system(depth=9), {"depth.bad": 3}, ("depth",), {"good": 9, "bad": 3}),
        (system(), {"top_k": 4}, ("top_k",), 4),
        (
            system("weighted_score"),
            {"fusion.normalize.method": "z_score"},
            ("fusion", "normalize", "method"),
            "z_score",
        ),
        (
            system(),
            {"fusion.method": "rrf_v2", "fusion.weights.bad": 0.5},
            ("fusion", "weights"),
            {"good": 2.0, "bad": 0.5},
        ),
        (V2, {"blend.method": "replace"}, ("blend", "depth"), 5),
        (V2, {"blend.method": "none"}, ("blend", "method"), "none"),
        (V2, {"fusion(rrf_v2).k": 9}, ("fusion", "k"), 9),
    ],
)
def test_a_value_lands_where_its_path_says(
    start: System,
    params: dict[str, Any],
    where: tuple[str, ...],
    expected: object,
) -> None:
    found: Any = apply_parameters(start, params, ROLES).model_dump()
    for part in where:
        found = found[part]
    assert found == expected


@pytest.mark.parametrize(
    ("path", "value"),
    [("fusion.k.bad", 9), ("fusion.k.good", 60), ("fusion.k", ABSENT), ("fusion.k.ugly", ABSENT)],
)
def test_reads_the_number_of_a_source(path: str, value: object) -> None:
    assert read_parameter(PER_SOURCE, path, ROLES) == value
    assert read_parameter(system(), path, ROLES) == (60 if value != ABSENT else read_k(path))


def read_k(path: str) -> object:
    return 60 if path == "fusion.k" else ABSENT


def test_weights_by_type_add_up_to_one() -> None:
    start = system(weights_by_type={"hybrid": {"good": 0.5, "bad": 0.5}})
    path = "weights_by_type.hybrid.good"
    assert read_parameter(start, path, ROLES) == 0.5
    found = apply_parameters(start, {path: 0.25}, ROLES).weights_by_type
    assert found is not None
    assert found["hybrid"] == pytest.approx({"good": 1 / 3, "bad": 2 / 3})
    with pytest.raises(ConfigError, match=r"by_type\.hybrid: .* 0"):
        apply_parameters(start, {path: 0, "weights_by_type.hybrid.bad": 0}, ROLES)


@pytest.mark.parametrize(
    ("params", "said"),
    [
        ({"fusion.kk": 1}, "unknown key 'kk'"),
        ({"nothing.k": 1}, "unknown key 'nothing.k'"),
        *[({f"fusion.{table}.ugly": 1}, "no source of") for table in ("weights", "k")],
        ({"fusion.k.bad": "much"}, "fusion.k.bad: input should"),
        ({"fusion.weights.bad": "much"}, "must be a number"),
        ({"blend.tiers.3.value": 0.5}, "the table has 2 entries"),
        ({"fusion.method": "rff"}, "did you mean 'rrf'"),
        ({"blend.method": "lineal"}, "did you mean 'linear'"),
        ({"fusion.k": -1}, "greater than or equal to 0"),
    ],
)
def test_a_path_that_leads_nowhere_is_an_error(params: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        apply_parameters(V2, params, ROLES)


def test_a_blend_that_needs_a_reranker_says_where_to_get_one() -> None:
    with pytest.raises(ConfigError, match="blend with a reranker"):
        apply_parameters(system(), {"blend.method": "linear"}, ROLES)


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("fusion.k", 60),
        ("fusion.weights.good", 2.0),
        ("fusion.bonus.2.ranks", 2),
        ("blend.tiers.1.ranks", 3),
        ("blend.tiers.3.value", ABSENT),
        ("blend.beta", ABSENT),
        ("fusion.normalize.method", ABSENT),
        ("fusion.missing", ABSENT),
        ("blend.min_score", None),
        ("depth.bad", None),
        ("depth.ugly", ABSENT),
        ("fusion.weights.ugly", ABSENT),
        ("fusion(a).k", 60),
    ],
)
def test_reading_finds_what_stands_there(path: str, expected: object) -> None:
    assert read_parameter(V2, path, ROLES) == expected


def test_names_may_hold_dots() -> None:
    roles = {"bm25.v1": frozenset[str](), "dense": frozenset[str]()}
    start = System.model_validate({"name": "x", "runs": ["bm25.v1", "dense"]})
    found = apply_parameters(start, {"fusion.weights.bm25.v1": 0.5, "depth.bm25.v1": 3}, roles)
    assert found.fusion.model_dump()["weights"] == {"bm25.v1": 0.5, "dense": 1.0}
    assert found.depth == {"bm25.v1": 3}
    assert read_parameter(found, "depth.bm25.v1", roles) == 3


def test_a_system_without_its_roles_still_says_where_weights_would_stand() -> None:
    lost = {name: frozenset[str]() for name in ROLES}  # rrf_v2 needs a source of role question
    assert read_parameter(V2, "fusion.weights.good", lost) == 1.0
    with pytest.raises(ConfigError, match="weights_by_type"):
        apply_parameters(V2, {"weights_by_type.local.good": 0.5}, ROLES)


def test_alpha_gives_way_to_weights() -> None:
    start = system({"method": "rrf", "alpha": 0.25})
    fusion = apply_parameters(start, {"fusion.weights.bad": 0.5}, ROLES).fusion.model_dump()
    assert fusion == {
        "method": "rrf",
        "weights": {"good": 0.25, "bad": 0.5},
        "k": 60,
        "normalize": "none",
    }
    assert read_parameter(start, "fusion.weights.bad", ROLES) == 0.75
    assert apply_parameters(start, {"fusion.alpha": 0.5}, ROLES).fusion.model_dump()["alpha"] == 0.5


def test_an_alias_is_no_choice_of_a_method() -> None:
    with pytest.raises(ConfigError, match=r"'convex' .*'weighted_score'"):
        apply_parameters(system(), {"fusion.method": "convex"}, ROLES)


SIDES = {"a": frozenset({"keyword"}), "b": frozenset({"semantic"})}
SYSTEM = System("s", ["a", "b"], {"method": "rrf", "k": {"by_intent": {"meta": 10, "default": 60}}})
META = "by_intent.meta.fusion.k"


def test_a_number_of_one_intent_is_read_and_set() -> None:
    assert read_parameter(SYSTEM, META, SIDES) == 10
    assert read_parameter(SYSTEM, "by_intent.other.fusion.k", SIDES) is ABSENT
    changed = apply_parameters(SYSTEM, {META: 20, "by_intent.meta.fusion.weights.a": 0.5}, SIDES)
    assert changed.of_class("meta").fusion.model_dump()["k"] == 20
    assert changed.of_class("meta").fusion.model_dump()["weights"] == {"a": 0.5, "b": 1.0}
    assert changed.of_class("default") == SYSTEM.of_class("default")


@pytest.mark.parametrize(
    "path",
    ["by_intent.other.fusion.k", "by_query_type.meta.fusion.k", "by_query_type.local.blend.x"],
)
def test_a_class_that_the_system_does_not_have(path: str) -> None:
    with pytest.raises(ConfigError, match=r"such (intent|query)"):
        apply_parameters(SYSTEM, {path: 20}, SIDES)


def test_a_path_of_all_queries_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"intent: .* by_intent\.default"):
        build_search_space(SYSTEM, {"fusion.k": ParameterRange(low=1, high=9, int=True)}, SIDES)


def test_only_one_kind_of_classes_is_tuned() -> None:
    with pytest.raises(ValueError, match=r"by_query_type .*by_intent"):
        TuneSettings(system="s", by_query_type=True, by_intent=True)


def collapsed(**keys: object) -> System:
    return system(collapse={"by": {"split": "#"}, **keys})


@pytest.mark.parametrize(
    ("keys", "blend", "expected"),
    [
        (
            {"score": "sum"},
            "none",
            {"place": ("fused", "each list"), "score": ("sum", "max", "rrf"), "k": ()},
        ),
        ({"keep": 2}, BLEND, {"place": ("fused", "each list", "reranked"), "keep": ()}),
        ({"score": "max", "place": "each list", "by": "id"}, "none", {}),
    ],
)
def test_how_chunks_are_collapsed_can_be_tuned(
    keys: dict[str, Any], blend: object, expected: dict[str, tuple[str, ...]]
) -> None:
    default = system(blend=blend, collapse={"by": {"split": "#"}, **keys})
    declared = [one for one in declared_parameters(default) if one.path.startswith("collapse")]
    choices = {one.path.removeprefix("collapse."): one.choices for one in declared}
    assert choices == expected
    for one in declared:
        value = read_parameter(default, one.path, ROLES)
        assert one.contains(value), one.path
    assert paths(declared_parameters(system())) == [
        "fusion.k",
        "fusion.weights.good",
        "fusion.weights.bad",
    ]


def test_a_tuned_collapse_is_set_in_its_place() -> None:
    default = collapsed(score="rrf", k=20)
    ranges = {
        "collapse.score": {"choices": ["rrf", "max"]},
        "collapse.place": {"choices": ["fused", "each list"]},
        "collapse.k": {"low": 1, "high": 99, "int": True},
    }
    given = problem(default, ranges)
    assert given.default_params == {
        "collapse.score": "rrf",
        "collapse.place": "fused",
        "collapse.k": 20,
    }
    ranked = apply_parameters(default, {"collapse.k": 7, "collapse.place": "each list"}, ROLES)
    assert ranked.collapse is not None
    assert (ranked.collapse.k, ranked.collapse.place) == (7, "each list")
    # The constant belongs to the score that is replaced.
    greatest = apply_parameters(default, {"collapse.score": "max"}, ROLES)
    assert greatest.collapse is not None
    assert (greatest.collapse.score, greatest.collapse.k) == ("max", 60)


@pytest.mark.parametrize(
    ("default", "path", "message"),
    [
        (collapsed(score="max"), "collapse.k", "score: rrf"),
        (collapsed(keep=1), "collapse.score", "exactly one of keep and score"),
        *(
            (
                collapsed(score="max", place="each list", by="id"),
                path,
                f"{path}: by: id merges",
            )
            for path in ("collapse.place", "collapse.score")
        ),
        (system(), "collapse.place", "collapse.place"),
    ],
)
def test_a_path_that_the_collapse_has_not_is_refused(
    default: System, path: str, message: str
) -> None:
    choices = {"collapse.score": ["max", "rrf"], "collapse.place": ["fused", "each list"]}
    given = ParameterRange(low=1, high=9, int=True)
    if path in choices:
        given = ParameterRange(choices=tuple(choices[path]))
    with pytest.raises(ConfigError, match=message):
        build_search_space(default, {path: given}, ROLES)


def test_trials_that_collapse_differ_by_their_place_and_score() -> None:
    lists = {
        "good": {"q": {"x#1": 9.0, "a#1": 8.0, "y#1": 7.0, "y#2": 6.9}},
        "bad": {"q": {"a#2": 9.0, "y#3": 1.0}},
    }
    runs = align(
        Qrels.from_dict({"q": {"a": 1}}), [Run.from_dict(name, of) for name, of in lists.items()]
    )
    given = problem(collapsed(score="max"), {"collapse": "own"}, runs=runs, measure="RR")
    trials: list[Params] = [
        {"collapse.place": "fused", "collapse.score": "max"},
        {"collapse.place": "fused", "collapse.score": "sum"},
        {"collapse.place": "each list", "collapse.score": "max"},
        {"collapse.place": "each list", "collapse.score": "sum"},
        {"collapse.place": "fused", "collapse.score": "rrf", "collapse.k": 1},
    ]
    assert all(given.contains(params) for params in trials)
    # Only in each list does a have the best chunk of both; x has the best one of the first alone,
    # and y the most chunks.
    assert given.evaluate_params(trials)[:, 0].tolist() == [0.5, 0.5, 1.0, 0.5, 0.5]
