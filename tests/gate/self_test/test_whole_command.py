"""The whole command where the right answer is known, and the slow form of the rule."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fusion_bench.errors import FusionBenchError
from fusion_bench.gate.inputs import GateInputs
from fusion_bench.gate.self_test.whole_command import commands, run
from fusion_bench.gate.self_test.whole_command.cases import MadeCase, make_cases
from fusion_bench.gate.self_test.whole_command.damaged import run_damaged_lists
from fusion_bench.gate.self_test.whole_command.project import MadeProject
from fusion_bench.gate.self_test.whole_command.slow_rule import SlowCheck, adjust_slowly
from fusion_bench.stats.betting_bound import betting_bound
from fusion_bench.stats.intervals import estimate_mean
from fusion_bench.stats.randomization_tests import adjust_holm, randomization_p_values
from fusion_bench.util.processes.worker_process import WorkerProcess
from tests.gate import cases
from tests.util.processes.worker_functions import exit_at_once

values = st.lists(st.sampled_from([-1.0, -0.5, -0.25, 0.0, 0.0, 0.5]), min_size=4, max_size=12)


def test_every_answer_of_the_command_is_right() -> None:
    outcomes = run.run_cases()
    assert [outcome.name for outcome in outcomes] == [case.name for case in make_cases()]
    assert [outcome.faults for outcome in outcomes] == [()] * len(outcomes)
    told = {status for outcome in outcomes for status in outcome.statuses}
    assert told == {
        "unchanged", "pass", "pass on these queries", "fell", "regressed", "inconclusive"
    }  # fmt: skip
    assert {outcome.exit_code for outcome in outcomes} == {0, 1, 3}


def test_damaged_lists_fall(tmp_path: Path) -> None:
    outcomes = [*run_damaged_lists(cases_inputs(tmp_path))]
    assert [outcome.faults for outcome in outcomes] == [()] * 4
    assert [outcome.exit_code for outcome in outcomes] == [0, 1, 1, 0]


def cases_inputs(folder: Path) -> GateInputs:
    """The made project, every query its own group, so that there are enough of them."""
    cases.make_project(folder)
    lines = "".join(f'{{"id": "q{q}", "type": "local"}}\n' for q in range(cases.QUERIES))
    (folder / "datasets/mine/queries.jsonl").write_text(lines)
    return cases.gate_inputs(folder)


@pytest.mark.parametrize(
    ("status", "difference", "code", "fault"),
    [
        ("pass", -5 / 60, 1, "RR@10 (baseline): pass, and regressed is right"),
        ("regressed", 5 / 60, 1, "RR@10 (baseline): a difference of 0.083333, not -0.083333"),
        ("regressed", -5 / 60, 0, "exit code 0, and 1 is right"),
    ],
)
def test_a_wrong_answer_is_a_fault(status: str, difference: float, code: int, fault: str) -> None:
    check = {"measure": "RR@10", "reference": "baseline"}
    policy = {"checks": {"RR@10": {"max_drop": 0.005}}}
    case = MadeCase("5 lost", MadeProject([1] * 60, [0] * 5 + [1] * 55, policy))
    found = [*run.find_faults(case, code, [{**check, "status": status, "difference": difference}])]
    assert found == [fault]


def test_commands_that_do_not_end_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commands, "_run_command", exit_at_once)
    with (
        WorkerProcess() as process,
        pytest.raises(FusionBenchError, match="0 of 1 commands ended, then: a worker process"),
    ):
        commands.run_commands([(Path(), ["gate"])], process)


@given(values, st.sampled_from([0.0, 0.1, 0.3]))
@settings(deadline=None)
def test_the_slow_rule_computes_what_the_gate_computes(
    differences: list[float], max_drop: float
) -> None:
    check, array = SlowCheck(differences, max_drop), np.array(differences)
    estimate = estimate_mean(array, None, alpha=0.1)
    assert check.mean == pytest.approx(estimate.mean)
    assert check.t_bound == pytest.approx(estimate.low)
    if check.mean < -max_drop:
        [p] = randomization_p_values(array[None], alternative="less")
        assert check.p_fell == pytest.approx(p)
    bound = betting_bound(array, alpha=0.05)
    if abs(bound + max_drop) > 1e-6:
        assert check.is_bet_won == (bound > -max_drop)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=6))
def test_holm_by_loops(p_values: Sequence[float]) -> None:
    assert adjust_slowly(p_values) == pytest.approx(adjust_holm(np.array(p_values)).tolist())
