"""What may stand under ``gate:``."""

from __future__ import annotations

from pathlib import Path

import pytest

from fusion_bench.errors import ConfigError
from fusion_bench.experiment.experiment import Experiment, read_experiment
from fusion_bench.experiment.settings import GatePolicy, Tolerance
from tests.gate import cases


def experiment(tmp_path: Path, gate: str, systems: str = "live") -> Experiment:
    text = cases.FILES[cases.EXPERIMENT].split("gate:")[0]
    lines = text.replace("  live: {runs: [a]}", f"  {systems}: {{runs: [a]}}")
    path = tmp_path / "x.yaml"
    path.write_text(f"{lines}{gate}\n", encoding="utf-8")
    return read_experiment(path)[0]


def test_the_short_form_is_the_checks(tmp_path: Path) -> None:
    short = experiment(tmp_path, "gate: {nDCG@10: {max_drop: 0.005}, RR@10: {max_drop: 0.01}}")
    long = experiment(
        tmp_path, "gate: {checks: {nDCG@10: {max_drop: 0.005}, RR@10: {max_drop: 0.01}}}"
    )
    assert short.gate == long.gate
    assert short.gate is not None
    assert short.gate.measures == ("nDCG@10", "RR@10")
    assert short.gate.inconclusive == "block"


def test_slices_go_for_all_measures_or_for_one() -> None:
    policy = GatePolicy(
        checks={
            "RR": Tolerance(max_drop=0.1),
            "AP": Tolerance(max_drop=0.1, slices=()),
            "P@5": Tolerance(max_drop=0.1, slices=("global",)),
        },
        slices=("local",),
    )
    assert policy.slices_of("RR") == (None, "local")
    assert policy.slices_of("AP") == (None,)
    assert policy.slices_of("P@5") == (None, "global")


@pytest.mark.parametrize(
    ("gate", "complaint"),
    [
        ("gate: {RR@10: {max_drop: -1}}", r"gate\.RR@10\.max_drop: .*greater than or equal to 0"),
        ("gate: {RR@10: {max_drop: .nan}}", "plain digits, .* given .nan"),
        ("gate: {RR@10: 0.01}", r"gate\.RR@10: a mapping"),
        ("gate: {RR@10: {}}", r"gate\.checks\.RR@10\.max_drop: is required"),
        ("gate: {RR@10: {max_drop: 0, maxdrop: 1}}", "unknown key 'maxdrop'"),
        ("gate: {system: live, RR@10: {max_drop: 0}}", r"unknown key 'RR@10'.*known: system"),
        ("gate: {}", r"gate\.checks: is required"),
        ("gate: {checks: {}}", r"gate\.checks: "),
        (
            "gate: {checks: {RR: {max_drop: 0}}, system: dead}",
            r"x\.yaml:\d+: gate\.system: unknown system 'dead' \(known: live, plain\)",
        ),
        (
            "gate: {checks: {RR: {max_drop: 0}}, slices: [a, a]}",
            r"gate\.slices: 'a' is listed twice",
        ),
        (
            "gate: {checks: {RR: {max_drop: 0}}, inconclusive: maybe}",
            r"gate\.inconclusive: .*'block' or 'warn'",
        ),
        (
            "gate: {checks: {RR: {max_drop: 0}}, "
            "guards: [{measure: RR, max_loss: 0.1, max_share: 2}]}",
            "max_share",
        ),
        (
            "gate: {checks: {RR: {max_drop: 0}}, guards: [{measure: RR, lose: 0.1}]}",
            r"guards\.0\.lose: this key is called 'max_loss' now",
        ),
    ],
)
def test_what_is_refused(tmp_path: Path, gate: str, complaint: str) -> None:
    with pytest.raises(ConfigError, match=complaint):
        experiment(tmp_path, gate)


def test_the_only_system_beside_the_baseline_is_guarded(tmp_path: Path) -> None:
    found = experiment(tmp_path, "gate: {RR: {max_drop: 0}}").gated_system
    assert found is not None
    assert found.name == "live"


def test_a_system_that_stands_alone_is_guarded() -> None:
    alone = Experiment.model_validate(
        {"dataset": "d", "baseline": "it", "systems": {"it": {"runs": ["a"]}}}
    )
    assert alone.gated_system == alone.systems["it"]


def test_of_several_systems_one_must_be_named() -> None:
    systems = {name: {"runs": ["a"]} for name in ("one", "two", "three")}
    open_ = {"dataset": "d", "baseline": "one", "systems": systems}
    assert Experiment.model_validate(open_).gated_system is None
    gate = {"checks": {"RR": {"max_drop": 0}}, "system": "one"}
    named = Experiment.model_validate({**open_, "gate": gate})
    assert named.gated_system == named.systems["one"]
