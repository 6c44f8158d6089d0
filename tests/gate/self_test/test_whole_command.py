"""The whole command where the right answer is known, and the slow form of the rule."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fusion_bench.errors import FusionBenchError
from fusion_bench.gate import self_test_command
from fusion_bench.gate.checks import Check, run_checks
from fusion_bench.gate.inputs import GateInputs
from fusion_bench.gate.self_test_command import Checks, run_damaged_lists
from fusion_bench.stats.values import Pair
from fusion_bench.util.worker_processes import WorkerProcess
from tests.gate import cases
from tests.gate.self_test import made_cases
from tests.gate.self_test.made_cases import MadeCase, MadeProject, find_faults, make_cases
from tests.gate.self_test.slow_rule import (
    CONSTRUCTED,
    PLAIN_POLICY,
    SlowCheck,
    right_checks,
    right_exit_code,
)
from tests.util.worker_functions import exit_at_once


def test_every_answer_of_the_command_is_right(monkeypatch: pytest.MonkeyPatch) -> None:
    judged: list[tuple[MadeCase, Checks]] = []

    def spy(case: MadeCase, code: int, checks: Checks) -> Iterator[str]:
        judged.append((case, checks))
        return find_faults(case, code, checks)

    monkeypatch.setattr(made_cases, "find_faults", spy)
    outcomes = [*made_cases.run_cases()]
    for case, checks in judged:
        for slow, stated in zip(right_checks(case, checks), case.checks, strict=True):
            assert {**stated, **slow} == stated, case.name
        if case.project.policy.keys() <= PLAIN_POLICY and case.name not in CONSTRUCTED and checks:
            statuses = [check["status"] for check in case.checks]
            assert right_exit_code(case, statuses) == case.exit_code, case.name
    assert [outcome.name for outcome in outcomes] == [case.name for case in make_cases()]
    assert [outcome.faults for outcome in outcomes] == [()] * len(outcomes)
    told = {status for outcome in outcomes for status in outcome.statuses}
    assert told == {"unchanged", "pass", "regressed", "inconclusive", "unjudged decide"}
    assert {outcome.exit_code for outcome in outcomes} == {0, 1, 2, 3}


def test_damaged_lists_fall(tmp_path: Path) -> None:
    outcomes = [*run_damaged_lists(cases_inputs(tmp_path))]
    assert [outcome.faults for outcome in outcomes] == [()] * 3
    assert [outcome.exit_code for outcome in outcomes] == [0, 1, 0]


def cases_inputs(folder: Path) -> GateInputs:
    """The made project, every query its own group, so that there are enough of them."""
    cases.make_project(folder)
    lines = "".join(f'{{"id": "q{q}", "type": "local"}}\n' for q in range(cases.QUERIES))
    (folder / "datasets/mine/queries.jsonl").write_text(lines)
    return cases.gate_inputs(folder)


@pytest.mark.parametrize(
    ("status", "difference", "code", "fault"),
    [
        ("pass", -6 / 60, 1, "RR@10 (baseline): pass, and regressed is right"),
        ("regressed", 6 / 60, 1, "RR@10 (baseline): a difference of 0.100000, not -0.100000"),
        ("regressed", -6 / 60, 0, "exit code 0, and 1 is right"),
    ],
)
def test_a_wrong_answer_is_a_fault(status: str, difference: float, code: int, fault: str) -> None:
    found = [*find_faults(six_lost(), code, [check(status=status, difference=difference)])]
    assert found == [fault]


def six_lost() -> MadeCase:
    lists = {"before": [[1] * 60], "after": [[0] * 6 + [1] * 54]}
    project = MadeProject(lists, {"checks": {"RR@10": {"max_drop": 0.005}}})
    case = MadeCase("6 lost", project, exit_code=1)
    return replace(case, checks=right_checks(case, [check()]))


def check(**changed: object) -> dict[str, object]:
    """The record of the check of six lost queries."""
    right = {"status": "regressed", "difference": -6 / 60}
    return {"measure": "RR@10", "reference": "baseline", "slice": None, **right, **changed}


def test_commands_that_do_not_end_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(self_test_command, "_run_command", exit_at_once)
    with (
        WorkerProcess() as process,
        pytest.raises(FusionBenchError, match="0 of 1 commands"),
    ):
        self_test_command.run_commands([(Path(), ["gate"])], process)


@given(
    st.lists(st.sampled_from([-1.0, -0.5, -0.25, 0.0, 0.0, 0.5]), min_size=4, max_size=9),
    st.sampled_from([0.0, 0.1, 0.3]),
    st.sampled_from([1, 2, 3]),
    st.sampled_from([0.05, 0.025]),
)
def test_the_slow_rule_decides_as_the_gate_decides(
    differences: list[float], max_drop: float, first: int, level: float
) -> None:
    codes = np.maximum(np.arange(len(differences)) - first + 1, 0)  # a group of ``first`` queries
    keys = tuple(f"g{code}" for code in codes)
    slow = SlowCheck(differences, max_drop, keys, level)
    pair = Pair.from_arrays(np.array(differences), keys=keys, measure="RR")
    fast = Check("c", None, max_drop, pair)
    [result] = run_checks([fast], runs=round(0.05 / level))
    assert result.difference == pytest.approx(slow.mean)
    assert result.p == pytest.approx(slow.p if slow.changed else 1.0)
    if abs(slow.lower_end + max_drop) > 1e-9 and abs(slow.mean + max_drop) > 1e-9:
        assert result.status == slow.decide(1)
