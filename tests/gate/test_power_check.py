"""The warning about a check that is too weak for its tolerance, and the queries that suffice."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from fusion_bench.gate.checks import Check, run_checks
from fusion_bench.gate.pages.check_texts import power_warning, required_queries
from fusion_bench.gate.records.check_result import CheckResult
from fusion_bench.gate.self_test.run import check_power
from tests.gate import cases
from tests.gate.cases import EXPERIMENT, gate_inputs
from tests.tiny import edit


def run_check(difference: list[float] | np.ndarray, m: float, groups: int = 1) -> CheckResult:
    """What the gate finds for these differences."""
    size = len(difference)
    codes = np.arange(size) // groups
    [result] = run_checks([Check("c", None, "RR", m, np.zeros(size), np.array(difference), codes)])
    return result


def test_the_required_queries_suffice() -> None:
    difference = np.random.default_rng(3).normal(0, 0.2, 60)
    result = run_check(difference, 0.02)
    assert power_warning(result) is not None
    times = -(-(required_queries(result) or 0) // 60)
    assert times > 4
    assert power_warning(run_check(np.tile(difference, times), 0.02)) is None
    assert power_warning(run_check(np.tile(difference, times // 4), 0.02)) is not None


@pytest.mark.parametrize(
    ("difference", "m"),
    [
        ([0.5, -0.5] * 20, 0.4),  # the tolerance is greater than the noise
        ([0.0] * 60, 0.0),
    ],
)
def test_no_warning(difference: list[float], m: float) -> None:
    assert power_warning(run_check(difference, m)) is None


def test_no_number_of_queries_suffices_for_a_tolerance_of_0() -> None:
    result = run_check([0.5, -0.5] * 20, 0.0)
    assert required_queries(result) is None
    assert "no number suffices" in str(power_warning(result))


def test_groups_are_named() -> None:
    difference = np.random.default_rng(3).normal(0, 0.2, 60)
    assert "60 queries in 20 groups" in str(power_warning(run_check(difference, 0.01, groups=3)))


def test_an_update_warns_from_the_differences_of_two_systems(tmp_path: Path) -> None:
    root = cases.make_project(tmp_path)
    warnings = check_power(gate_inputs(root))
    assert warnings[0].startswith("mine / RR@10: minimum detectable drop (80 % power) 0.0")
    assert "live and plain" in warnings[0]
    edit(root, EXPERIMENT, "plain: {runs: [a, b]}", "plain: {runs: [gone]}")
    assert check_power(gate_inputs(root)) == ()  # no spread is known


def test_an_experiment_of_one_system_warns_of_nothing(tmp_path: Path) -> None:
    root = cases.make_project(tmp_path)
    edit(root, EXPERIMENT, "  plain: {runs: [a, b]}\n", "")
    edit(root, EXPERIMENT, "baseline: plain\n", "baseline: live\n")
    assert check_power(gate_inputs(root)) == ()
