"""Plans of queries: each number against the functions and formulas that it stands for."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import nct, t

from fusion_bench.errors import ConfigError
from fusion_bench.stats.power import (
    DecisionRule,
    assume_spread,
    estimate_spread,
    plan_rule,
    power_by_queries,
    sidak_tail,
)

RULE = DecisionRule("ship", 0.02)


def test_sidak_is_student_for_one_and_grows() -> None:
    assert sidak_tail(1) == pytest.approx(0.025)
    assert (1 - 2 * sidak_tail(7, 0.1)) ** 7 == pytest.approx(0.9)


@pytest.mark.parametrize(("systems", "alpha"), [(0, 0.05), (1, 0.0), (1, 1.0)])
def test_sidak_refuses(systems: int, alpha: float) -> None:
    with pytest.raises(ConfigError):
        sidak_tail(systems, alpha)


def test_a_rule_on_queries_at_hand() -> None:
    plan = plan_rule(RULE, assume_spread(0.2, 400), [0.02, 0.03])
    critical = t.ppf(0.98, 399)
    assert plan.critical_value == pytest.approx(critical)
    assert plan.tail == 0.02
    for each in plan.differences:
        assert each.power == pytest.approx(nct.sf(critical, 399, each.difference / 0.01))
        assert each.needed is not None
        at_needed = power_by_queries(
            plan, assume_spread(0.2, 400), each.difference, each.needed.queries
        )
        assert 0.8 <= at_needed < 0.83
    assert plan.detectable == pytest.approx(0.01 * (critical + 0.843), rel=0.001)


def test_the_critical_value_of_a_family_replaces_the_tail() -> None:
    rule = DecisionRule("better or worse", 0.025, critical_value=3.0)
    plan = plan_rule(rule, assume_spread(0.2, 400), [0.02])
    assert plan.critical_value == 3.0
    assert plan.tail == pytest.approx(t.sf(3.0, 399))


def test_without_queries_nothing_is_at_hand() -> None:
    plan = plan_rule(RULE, assume_spread(0.2), [0.02])
    assert (plan.detectable, plan.differences[0].power) == (None, None)
    assert plan.differences[0].needed is not None
    assert plan.differences[0].needed.low is None


def test_no_critical_value_shows_nothing() -> None:
    spread = estimate_spread(np.array([0.1, -0.2, 0.3, 0.0, 0.2]))
    plan = plan_rule(DecisionRule("better or worse", 0.025, math.inf), spread, [0.02])
    assert (plan.detectable, plan.differences[0].needed) == (None, None)
    assert plan.differences[0].power == 0
    assert math.isnan(power_by_queries(plan, spread, 0.02, 100))


@pytest.mark.parametrize("differences", [[], [0.0], [-0.1], [math.nan], [math.inf]])
def test_refuses_differences(differences: list[float]) -> None:
    with pytest.raises(ConfigError, match="difference"):
        plan_rule(RULE, assume_spread(0.2), differences)
