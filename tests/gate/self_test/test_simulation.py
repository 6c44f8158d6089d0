"""Printed chances on other queries, and alarms between trials of one system."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from fusion_bench.gate.estimates import CheckRepeats
from fusion_bench.gate.self_test.error_rates import SelfTestResult
from fusion_bench.gate.self_test.simulation import (
    RepeatAlarms,
    measure_repeat_alarms,
    simulated_p_values,
)

from fusion_bench.data.ordering import FloatArray
from fusion_bench.gate.checks import Check, run_checks
from fusion_bench.gate.self_test import error_rates as self_test
from fusion_bench.gate.self_test import simulation
from fusion_bench.gate.self_test.page import build_self_test_page
from fusion_bench.gate.verdict import CheckResult
from fusion_bench.report.markdown import render_page
from tests.gate.cases import gate_inputs
from tests.gate.test_trials import draw_places, make_trials

QUANTITIES = ["power at the detectable drop", "alarm", "pass", "false pass"]


def make_check(size: int = 160) -> Check:
    random = np.random.default_rng(5)
    difference = random.normal(0, 0.2, size) * (random.random(size) < 0.8)
    return Check("c", None, "one", 0.02, np.full(size, 0.5), 0.5 + difference, np.arange(size))


@pytest.fixture(autouse=True)
def fewer_halvings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(simulation, "HALVINGS", 16)


def test_what_is_printed_happens_on_other_queries() -> None:
    found = simulation.compare_halves([make_check(), make_check()], seed=3)
    assert [outcome.quantity for outcome in found] == QUANTITIES  # one check of a collection
    assert all(outcome.agrees for outcome in found)
    assert found[0].printed == pytest.approx(0.8)


@pytest.mark.parametrize(
    ("field", "factor", "quantity"),
    [
        ("min_detectable_drop", 0.5, "power at the detectable drop"),
        ("false_pass_rate", 9.0, "false pass"),
    ],
)
def test_a_wrong_number_is_found_out(
    monkeypatch: pytest.MonkeyPatch, field: str, factor: float, quantity: str
) -> None:
    def wrong(checks: Sequence[Check], *, resamples: int, seed: int) -> list[CheckResult]:
        [result] = run_checks(checks, resamples=resamples, seed=seed)
        return [result.model_copy(update={field: factor * getattr(result, field)})]

    monkeypatch.setattr(simulation, "run_checks", wrong)
    found = simulation.compare_halves([make_check()], seed=3)
    assert quantity in {outcome.quantity for outcome in found if not outcome.agrees}


def test_few_groups_are_left_out() -> None:
    assert simulation.compare_halves([make_check(40)], seed=3) == ()


RUNS = 400


def repeat(values: FloatArray, *, group_size: int = 1, max_drop: float = 0.005) -> Check:
    """A system against itself, from values of shape (T, Q)."""
    means = values.mean(axis=0)
    groups = np.arange(values.shape[1]) // group_size
    return Check(
        "c", None, "m", max_drop, means, means, groups, repeats=CheckRepeats(values, values)
    )


def draw_values(trial_sd: float, *, queries: int = 80, trials: int = 3) -> FloatArray:
    rng = np.random.default_rng(3)
    by_query = 0.3 * rng.standard_normal(queries)
    moved = trial_sd * np.linspace(-1, 1, trials)[:, None]
    drawn: FloatArray = by_query + moved + 0.1 * rng.standard_normal((trials, queries))
    return drawn


def measure(check: Check, *, runs: int = RUNS) -> dict[str, RepeatAlarms]:
    return {row.design: row for row in measure_repeat_alarms([check], runs=runs, seed=5)}


def test_trials_without_an_effect_of_their_own_keep_the_level() -> None:
    rows = measure(repeat(draw_values(0.0)))
    assert [(row.trials, row.runs) for row in rows.values()] == [(3, RUNS), (1, RUNS), (1, 3)]
    assert [row.limit for row in rows.values()] == [0.05, 0.05, None]
    assert all(row.agrees for row in rows.values())
    assert 0 < rows["one new trial"].rate < 0.1


def test_an_effect_of_trials_alarms_only_where_it_cannot_be_seen() -> None:
    rows = measure(repeat(draw_values(0.05)))
    assert rows["new trials"].agrees
    assert rows["new trials"].rate < 0.08
    assert (rows["one new trial"].limit, rows["one new trial"].agrees) == (None, True)
    assert rows["one new trial"].rate > 0.3
    assert (rows["observed pairs"].count, rows["observed pairs"].limit) == (0, None)  # all gains


def test_observed_pairs_take_the_earlier_trial_as_the_baseline() -> None:
    rows = measure(repeat(draw_values(0.05)[::-1]), runs=39)
    assert (rows["observed pairs"].count, rows["observed pairs"].runs) == (3, 3)


def test_groups_are_drawn_as_a_whole() -> None:
    """Ten copies of each query are no ten queries: counted singly they would alarm far more."""
    copies = np.repeat(draw_values(0.0, queries=30), 10, axis=1)
    rows = measure(repeat(copies, group_size=10))
    assert all(row.agrees for row in rows.values())
    assert rows["one new trial"].rate < 0.1


def test_a_rule_that_forgets_the_trials_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(CheckRepeats, "make_terms", lambda *_: ())
    row = measure(repeat(draw_values(0.05)))["new trials"]
    assert not row.agrees
    assert row.rate > 0.3


def test_a_test_that_rejects_too_often_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    real = simulated_p_values
    monkeypatch.setattr(simulation, "simulated_p_values", lambda *given: real(*given) / 4)
    assert not measure(repeat(draw_values(0.0)))["one new trial"].agrees


def test_equal_trials_never_alarm() -> None:
    rows = measure(repeat(np.tile(draw_values(0.0)[:1], (3, 1))), runs=39)
    assert [row.count for row in rows.values()] == [0, 0, 0]


def test_a_check_that_cannot_run_is_left_out() -> None:
    values = draw_values(0.0)
    values[0, 0] = np.nan
    assert measure_repeat_alarms([repeat(values)], runs=39, seed=5) == ()


def test_the_self_test_of_an_experiment_knows_the_trials(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = make_trials(tmp_path, *draw_places(3))
    for name in ("run_damaged_lists", "compare_halves"):
        monkeypatch.setattr(self_test, name, lambda *_, **__: ())
    result = self_test.run_self_test(gate_inputs(root), runs=60)
    assert result.list_trials == 3
    designs = [row.design for row in result.trial_alarms]
    assert designs == ["new trials", "one new trial", "observed pairs"]
    assert "none above" in result.headline
    text = render_page(build_self_test_page(result, "Self-test"))
    assert "means over 3 trials" in text


def test_a_rate_above_the_level_fails_the_self_test() -> None:
    row = RepeatAlarms(
        check="c / m", design="new trials", trials=3, count=9, runs=10,
        low=0.5, high=1.0, limit=0.05, rate=0.9, agrees=False,
    )  # fmt: skip
    whole = SelfTestResult(
        systems=("a", "b"), agrees=True, error_rates=(), power_curves={}, skipped={}
    )
    result = whole.with_repeats(3, [row])
    assert not result.agrees
    page = build_self_test_page(result, "Self-test")
    assert page.sections[0].tables[-1].rows[0].tone == "failed"
