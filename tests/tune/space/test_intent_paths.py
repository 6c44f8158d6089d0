"""Paths of numbers by intent: declared, read, set, and refused."""

from __future__ import annotations

import pytest

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

ROLES = {"a": frozenset({"keyword"}), "b": frozenset({"semantic"})}
SYSTEM = System("s", ["a", "b"], {"method": "rrf", "k": {"by_intent": {"meta": 10, "default": 60}}})
META = "by_intent.meta.fusion.k"


def test_each_intent_declares_its_own_parameters() -> None:
    paths = {parameter.path for parameter in declared_parameters(SYSTEM)}
    assert {META, "by_intent.default.fusion.k"} <= paths
    assert all(path.startswith("by_intent.") for path in paths)


def test_a_number_of_one_intent_is_read_and_set() -> None:
    assert read_parameter(SYSTEM, META, ROLES) == 10
    assert read_parameter(SYSTEM, "by_intent.other.fusion.k", ROLES) is ABSENT
    changed = apply_parameters(SYSTEM, {META: 20, "by_intent.meta.fusion.weights.a": 0.5}, ROLES)
    assert changed.of_class("meta").fusion.model_dump()["k"] == 20
    assert changed.of_class("meta").fusion.model_dump()["weights"] == {"a": 0.5, "b": 1.0}
    assert changed.of_class("default") == SYSTEM.of_class("default")


@pytest.mark.parametrize(
    "path",
    ["by_intent.other.fusion.k", "by_query_type.meta.fusion.k", "by_query_type.local.blend.x"],
)
def test_a_class_that_the_system_does_not_have(path: str) -> None:
    with pytest.raises(ConfigError, match=r"such (intent|query)"):
        apply_parameters(SYSTEM, {path: 20}, ROLES)


def test_a_path_of_all_queries_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"intent: .* by_intent\.default"):
        build_search_space(SYSTEM, {"fusion.k": ParameterRange(low=1, high=9, int=True)}, ROLES)


def test_only_one_kind_of_classes_is_tuned() -> None:
    with pytest.raises(ValueError, match=r"by_query_type .*by_intent"):
        TuneSettings(system="s", by_query_type=True, by_intent=True)
