from __future__ import annotations

from pathlib import Path

import pytest

from fusion_bench.config.parameters import Value
from fusion_bench.console.session import ConsoleSession
from fusion_bench.console.setting import Control, Setting
from fusion_bench.errors import ConfigError, FusionBenchError
from fusion_bench.tune.space import declared_parameters
from tests.console.project import make_project, open_project


def controls(
    session: ConsoleSession, system: str = "boosted", **values: Value
) -> dict[str, Control]:
    parameters = {path.replace("__", "."): value for path, value in values.items()}
    _, listed = session.open_setting(Setting(system=system, parameters=parameters))
    return {control.parameter.path: control for control in listed}


def test_every_declared_parameter_has_a_control_with_the_range_of_tune(
    session: ConsoleSession,
) -> None:
    listed = controls(session)
    for parameter in declared_parameters(session.experiment.systems["boosted"]):
        if all(
            path in listed and listed[path].value in allowed for path, allowed in parameter.when
        ):
            assert listed[parameter.path].parameter == parameter
    assert {"fusion.k", "fusion.weights.b", "fusion.bonus.1.value", "blend.beta"} <= set(listed)
    assert {"dialect", "fusion.method", "blend.method", "blend.depth", "depth"} <= set(listed)


def test_values_are_those_of_the_system(session: ConsoleSession) -> None:
    values = {path: control.value for path, control in controls(session, fusion__k=7).items()}
    assert values["fusion.k"] == 7
    assert values["fusion.weights.b"] == 2  # written by its role
    assert values["fusion.bonus.2.ranks"] == 2
    assert (values["dialect"], values["depth"], values["blend.depth"]) == (None, None, 5)


def test_a_method_brings_its_own_controls(session: ConsoleSession) -> None:
    listed = controls(session, fusion__method="rbc")
    assert "fusion.phi" in listed
    assert "fusion.k" not in listed
    listed = controls(session, fusion__method="weighted_score", fusion__normalize__method="min_max")
    assert listed["fusion.normalize.method"].value == "min_max"
    assert listed["fusion.normalize.method"].is_structural


def test_a_blend_is_added_to_a_system_without_one(session: ConsoleSession) -> None:
    listed = controls(session, "plain", blend__method="position_aware")
    assert listed["blend.reranker"].value == "r"
    assert "blend.tiers.1.value" in listed
    assert "blend.reranker" not in controls(session, "plain")


def test_a_dialect_brings_its_methods_and_can_be_left(session: ConsoleSession) -> None:
    listed = controls(session, "plain", dialect="opensearch")
    assert listed["dialect"].value == "opensearch"
    assert "fusion.rank_constant" in listed
    assert "rbc" not in listed["fusion.method"].choices
    assert controls(session, "plain", dialect=None)["dialect"].value is None


def test_a_depth_of_an_engine_beyond_every_list_does_not_widen_the_range(
    session: ConsoleSession,
) -> None:
    depth = controls(session, "plain", dialect="opensearch")["depth"]
    assert depth.parameter.bounds == (1, 3)
    assert controls(session, "plain", dialect="opensearch", depth=2)["depth"].value == 2


def test_sources_with_depths_of_their_own_have_a_control_each(tmp_path: Path) -> None:
    make_project(tmp_path)
    session = open_project(tmp_path, "systems.plain.depth={a: 2}")
    assert controls(session, "plain")["depth.a"].value == 2
    assert controls(session, "plain", depth__b=1)["depth.b"].value == 1
    assert controls(session, "plain", dialect="elasticsearch", depth=1)["depth"].value == 1


def test_a_range_holds_the_value_of_the_experiment(tmp_path: Path) -> None:
    make_project(tmp_path)
    changes = ("systems.boosted.fusion.k=20.5", "systems.boosted.fusion.weights.question=7")
    session = open_project(tmp_path, *changes)
    listed = controls(session)
    assert listed["fusion.k"].parameter.kind == "float"
    assert listed["fusion.weights.b"].parameter.bounds == (0, 7)
    assert listed["fusion.weights.a"].parameter.bounds == (0, 2)
    assert controls(session, fusion__weights__b=6.5)["fusion.weights.b"].value == 6.5
    with pytest.raises(ConfigError, match=r"from 0 to 7, given 7\.5"):
        controls(session, fusion__weights__b=7.5)


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        ("fusion.k", 1e12, "fusion.k: "),
        ("fusion.k", 1.5, "fusion.k: must be a whole number from 1 to 1000, given 1.5"),
        ("fusion.k", True, "fusion.k: "),
        ("fusion.k", None, "fusion.k: "),
        ("fusion.weights.b", 2.5, "fusion.weights.b: must be a number from 0 to 2, given 2.5"),
        ("fusion.weights.b", -0.1, "fusion"),
        ("fusion.weights.question", 1.0, "no control of this setting"),
        ("fusion.bonus.1.value", "0.1", "must be a number"),
        ("fusion.bonus.9.value", 0.1, "the table has 2 entries"),
        ("fusion.bonus.1.ranks", 10**29, "fusion"),
        ("fusion.nope", 1, "unknown key 'nope'"),
        ("fusion.method", "os.system", "unknown fusion method"),
        ("fusion.method", 3, "unknown fusion method"),
        ("blend.reranker", "other", "other"),
        ("blend.depth", 0, "depth"),
        ("depth", 10**9, "depth"),
        ("dialect", "nope", "unknown dialect"),
        ("dialect", 7, "the name of an engine is needed"),
        ("name", "x", "no control of this setting"),
        ("runs", "a", "runs"),
        ("a.b.c", 1, "unknown key"),
        ("stages.x.fusion.k", 1, "stages"),
        ("by_query_type.x.fusion.k", 1, "no such query type"),
    ],
)
def test_values_that_no_control_takes_are_refused(
    session: ConsoleSession, path: str, value: object, message: str
) -> None:
    with pytest.raises(FusionBenchError, match=message) as caught:
        session.open_setting(Setting(system="boosted", parameters={path: value}))
    assert "\n" not in str(caught.value)


def test_weights_of_0_alone_are_refused(session: ConsoleSession) -> None:
    zeros = {"fusion.weights.a": 0, "fusion.weights.b": 0}
    with pytest.raises(ConfigError, match="every source weighs 0"):
        session.open_setting(Setting(system="boosted", parameters=zeros))


@pytest.mark.parametrize("value", [float("inf"), float("nan"), [1], {"a": 1}, "x" * 301])
def test_values_that_are_no_values_are_refused(value: object) -> None:
    with pytest.raises(ValueError, match=r"needed|characters"):
        Setting(system="boosted", parameters={"fusion.k": value})


def test_a_path_that_is_too_long_is_refused() -> None:
    with pytest.raises(ValueError, match="300"):
        Setting(system="boosted", parameters={"x" * 301: 1})
