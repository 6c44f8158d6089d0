"""The whole command where the right answer is known, and the slow form of the rule."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fusion_bench.errors import FusionBenchError
from fusion_bench.gate.inputs import GateInputs
from fusion_bench.gate.self_test import whole_command
from fusion_bench.gate.self_test.whole_command import Checks, run_damaged_lists
from fusion_bench.stats.corrections import adjust_holm, randomization_p_values
from fusion_bench.stats.intervals import betting_bound, estimate_mean, t_quantile
from fusion_bench.util.worker_processes import WorkerProcess
from tests.gate import cases
from tests.gate.self_test import made_cases
from tests.gate.self_test.made_cases import MadeCase, MadeProject, find_faults, make_cases
from tests.gate.self_test.slow_rule import (
    CONSTRUCTED,
    PLAIN_POLICY,
    SlowCheck,
    adjust_slowly,
    right_checks,
    right_exit_code,
)
from tests.texts import names_in_order
from tests.util.worker_functions import exit_at_once

values = st.lists(st.sampled_from([-1.0, -0.5, -0.25, 0.0, 0.0, 0.5]), min_size=4, max_size=12)
levels = st.sampled_from([0.05, 0.025])


def test_every_answer_of_the_command_is_right(monkeypatch: pytest.MonkeyPatch) -> None:
    judged: list[tuple[MadeCase, Checks]] = []

    def spy(case: MadeCase, code: int, checks: Checks) -> Iterator[str]:
        judged.append((case, checks))
        return find_faults(case, code, checks)

    monkeypatch.setattr(made_cases, "find_faults", spy)
    outcomes = [*made_cases.run_cases()]
    for case, checks in judged:
        assert right_checks(case, checks) == list(case.checks), case.name
        if case.project.policy.keys() <= PLAIN_POLICY and case.name not in CONSTRUCTED and checks:
            statuses = [check["status"] for check in case.checks]
            assert right_exit_code(case, statuses) == case.exit_code, case.name
    assert [outcome.name for outcome in outcomes] == [case.name for case in make_cases()]
    assert [outcome.faults for outcome in outcomes] == [()] * len(outcomes)
    told = {status for outcome in outcomes for status in outcome.statuses}
    assert told == {
        "unchanged", "pass", "pass on these queries", "fell", "regressed", "inconclusive",
        "unjudged decide",
    }  # fmt: skip
    assert {outcome.exit_code for outcome in outcomes} == {0, 1, 2, 3}


def test_a_stated_case_says_what_every_field_of_a_project_needs() -> None:
    by_name = {case.name: case for case in make_cases()}
    assert len(by_name) == len([*make_cases()])
    case = by_name["one slice loses, the other is as it was"]
    assert case.project.lists["after"] == [[1] * 60 + [2] * 40]
    assert case.project.types == ["a"] * 60 + ["b"] * 40
    assert case.steps == (("before", "update"), ("after", "gate"))


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
    found = [*find_faults(five_lost(), code, [check(status=status, difference=difference)])]
    assert found == [fault]


def five_lost() -> MadeCase:
    lists = {"before": [[1] * 60], "after": [[0] * 5 + [1] * 55]}
    project = MadeProject(lists, {"checks": {"RR@10": {"max_drop": 0.005}}})
    case = MadeCase("5 lost", project, exit_code=1)
    return replace(case, checks=right_checks(case, [check()]))


def check(**changed: object) -> dict[str, object]:
    """The record of the check of five lost queries; an exact sum gives its chance of a pass."""
    right = {"status": "regressed", "difference": -5 / 60, "false_pass_rate": 0.1139}
    return {"measure": "RR@10", "reference": "baseline", "slice": None, **right, **changed}


def test_a_wrong_chance_and_a_missing_check_are_faults() -> None:
    found = [*find_faults(five_lost(), 1, [check(false_pass_rate=0.02)])]
    assert len(found) == 1
    assert names_in_order(found[0], "RR@10 (baseline)", "0.0200", "0.1139")
    stated = replace(five_lost(), checks=[*five_lost().checks, {"status": "pass"}])
    [missing] = find_faults(stated, 1, [check()])
    assert missing.startswith("1 checks, and 2")


def test_commands_that_do_not_end_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(whole_command, "_run_command", exit_at_once)
    with (
        WorkerProcess() as process,
        pytest.raises(FusionBenchError, match="0 of 1 commands"),
    ):
        whole_command.run_commands([(Path(), ["gate"])], process)


@given(values, st.sampled_from([0.0, 0.1, 0.3]), st.sampled_from([1, 2, 3]), levels)
@settings(deadline=None)
def test_the_slow_rule_computes_what_the_gate_computes(
    differences: list[float], max_drop: float, first: int, level: float
) -> None:
    codes = np.maximum(np.arange(len(differences)) - first + 1, 0)  # a group of ``first`` queries
    groups = [f"g{code}" for code in codes] if first > 1 else ()
    check, array = SlowCheck(differences, max_drop, groups, level), np.array(differences)
    estimate = estimate_mean(array, codes, alpha=2 * level)
    assert check.mean == pytest.approx(estimate.mean)
    assert check.t_bound == pytest.approx(estimate.low)
    if check.mean < -max_drop:
        [p] = randomization_p_values(array[None], codes, alternative="less")
        assert check.p_fell == pytest.approx(p)
    bound = betting_bound(array, codes, alpha=level)
    if abs(bound + max_drop) > 1e-6:
        assert check.is_bet_won == (bound > -max_drop)


@pytest.mark.parametrize(("different", "step"), [(3, -1.0), (12, -0.5), (4, 0.25)])
def test_the_chance_of_a_false_pass_is_that_of_drawn_queries(different: int, step: float) -> None:
    differences = [step] * different + [0.0] * (80 - different)
    drawn = np.random.default_rng(0).choice(differences, (40_000, 80))
    shift = drawn.mean(axis=1) - np.mean(differences)
    errors = drawn.std(axis=1, ddof=1) / np.sqrt(80)
    simulated = (shift > t_quantile(79, 0.95) * errors).mean()
    assert SlowCheck(differences, 0.01).false_pass_rate == pytest.approx(simulated, abs=0.01)
    assert SlowCheck([*differences, step / 2], 0.01).false_pass_rate is None


@given(st.lists(st.floats(0, 1), min_size=1, max_size=6))
def test_holm_by_loops(p_values: Sequence[float]) -> None:
    assert adjust_slowly(p_values) == pytest.approx(adjust_holm(np.array(p_values)).tolist())
