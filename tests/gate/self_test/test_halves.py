"""Printed chances against what happens on the other half of the queries."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from fusion_bench.gate.checks import Check, run_checks
from fusion_bench.gate.self_test import simulation
from fusion_bench.gate.verdict import CheckResult

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
