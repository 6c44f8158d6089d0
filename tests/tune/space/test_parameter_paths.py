from __future__ import annotations

from typing import Any

import pytest

from fusion_bench.errors import ConfigError
from fusion_bench.experiment.system import System
from fusion_bench.tune.space import ABSENT, apply_parameters, read_parameter
from tests.tune.cases import aligned
from tests.tune.problems import BLEND, roles_of, system

ROLES = roles_of(aligned(4))
PER_SOURCE = system({"method": "rrf", "k": {"keyword": 9}})
V2 = system({"method": "rrf_v2"}, {**BLEND, "method": "position_aware"})


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
    assert found.root["hybrid"] == pytest.approx({"good": 1 / 3, "bad": 2 / 3})
    with pytest.raises(ConfigError, match=r"by_type\.hybrid: .* 0"):
        apply_parameters(start, {path: 0, "weights_by_type.hybrid.bad": 0}, ROLES)


@pytest.mark.parametrize(
    ("params", "said"),
    [
        ({"fusion.kk": 1}, "unknown key 'kk'"),
        ({"nothing.k": 1}, "unknown key 'nothing.k'"),
        ({"fusion.weights.ugly": 1}, "no source of that name or role"),
        ({"fusion.k.ugly": 1}, "no source of that name or role"),
        ({"fusion.k.bad": "much"}, "fusion.k.bad: input should be a valid number"),
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
