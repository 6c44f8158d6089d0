"""The warning about a check that is too weak for its tolerance, and the queries that suffice."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from fusion_bench.gate.checks import Check, run_checks
from fusion_bench.gate.page import power_warning
from fusion_bench.gate.self_test.error_rates import check_power
from fusion_bench.gate.verdict import CheckResult
from fusion_bench.stats.intervals import t_quantile
from tests.gate import cases
from tests.gate.cases import EXPERIMENT, gate_inputs
from tests.texts import names_in_order
from tests.tiny import edit


def run_check(difference: list[float] | np.ndarray, m: float, groups: int = 1) -> CheckResult:
    """What the gate finds for these differences."""
    size = len(difference)
    codes = np.arange(size) // groups
    [result] = run_checks([Check("c", None, "RR", m, np.zeros(size), np.array(difference), codes)])
    return result


def test_the_needed_queries_pass_with_the_stated_power() -> None:
    rng = np.random.default_rng(3)
    result = run_check(rng.normal(0, 0.2, 60), 0.05)
    assert result.needed is not None
    assert result.needed.low is not None
    assert result.sd is not None
    values = rng.normal(0, result.sd, (4000, result.needed.queries))
    errors = values.std(axis=1, ddof=1) / np.sqrt(values.shape[1])
    bounds = values.mean(axis=1) - t_quantile(values.shape[1] - 1, 0.95) * errors
    assert 0.78 < (bounds > -0.05).mean() < 0.85


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
    assert result.needed is None
    assert "no number suffices" in str(power_warning(result))


def test_groups_are_named() -> None:
    difference = np.random.default_rng(3).normal(0, 0.2, 60)
    assert "60 queries in 20 groups" in str(power_warning(run_check(difference, 0.01, groups=3)))


def test_an_update_warns_from_the_differences_of_two_systems(tmp_path: Path) -> None:
    root = cases.make_project(tmp_path)
    warnings = check_power(gate_inputs(root))
    assert names_in_order(warnings[0], "mine / RR@10: ", "(80 % power) 0.0")
    assert "live and plain" in warnings[0]
    edit(root, EXPERIMENT, "plain: {runs: [a, b]}", "plain: {runs: [gone]}")
    assert check_power(gate_inputs(root)) == ()  # no spread is known


def test_an_experiment_of_one_system_warns_of_nothing(tmp_path: Path) -> None:
    root = cases.make_project(tmp_path)
    edit(root, EXPERIMENT, "  plain: {runs: [a, b]}\n", "")
    edit(root, EXPERIMENT, "baseline: plain\n", "baseline: live\n")
    assert check_power(gate_inputs(root)) == ()
