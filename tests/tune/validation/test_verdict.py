"""The verdict by a table, the gain by hand, the false-ship rate by simulation."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from fusion_bench.tune.validation.verdict import (
    TuningVerdict,
    decide_verdict,
    needed_queries,
    paired_gain,
)


@pytest.mark.parametrize(
    ("low", "high", "verdict"),
    [
        (0.001, 0.002, "ship"),
        (0.001, 0.9, "ship"),
        (0.0, 0.9, "too few queries"),
        (-0.01, 0.0049, "keep"),
        (-0.01, 0.005, "too few queries"),
        (-0.01, -0.001, "worse"),
        (-0.01, 0.0, "keep"),
        (0.0, 0.0, "keep"),
        (math.nan, math.nan, "too few queries"),
    ],
)
def test_the_held_out_interval_decides(low: float, high: float, verdict: TuningVerdict) -> None:
    assert decide_verdict(low, high) == verdict


def test_a_greater_least_gain_keeps_more() -> None:
    assert decide_verdict(-0.01, 0.02, 0.03) == "keep"
    assert decide_verdict(-0.01, 0.02, 0.0) == "too few queries"


def test_needed_queries_by_the_formula() -> None:
    assert needed_queries(0.1, 0.01) == 784  # (2.8 · 10)²
    assert needed_queries(0.2) == 12_544  # (2.8 · 40)²
    assert needed_queries(0.0) is None
    assert needed_queries(math.nan) is None
    assert needed_queries(0.1, 0.0) is None


def test_so_many_queries_find_that_gain_with_power_eight_tenths() -> None:
    sd, least = 0.05, 0.01
    queries = needed_queries(sd, least)
    assert queries is not None
    rng = np.random.default_rng(1)
    draws = rng.normal(least, sd, size=(2000, queries))
    error = draws.std(axis=1, ddof=1) / math.sqrt(queries)
    reach = stats.t.ppf(0.975, queries - 1) * error
    found = float(((draws.mean(axis=1) - reach) > 0).mean())
    assert abs(found - 0.8) < 0.03


def test_the_gain_is_the_paired_t_interval_without_groups() -> None:
    rng = np.random.default_rng(2)
    default, tuned = rng.random(40), rng.random(40)
    found = paired_gain(tuned, default)
    d = tuned - default
    reach = stats.t.ppf(0.975, 39) * d.std(ddof=1) / math.sqrt(40)
    assert found.low == pytest.approx(d.mean() - reach)
    assert found.high == pytest.approx(d.mean() + reach)
    assert found.sd == pytest.approx(d.std(ddof=1))
    assert (found.wins, found.losses) == ((d > 0).sum(), (d < 0).sum())
    assert found.queries == found.groups == 40


def test_repeated_queries_in_a_group_tell_nothing_new() -> None:
    rng = np.random.default_rng(3)
    tuned = rng.random(30)
    alone = paired_gain(tuned, np.zeros(30))
    doubled = paired_gain(np.repeat(tuned, 4), np.zeros(120), np.repeat(np.arange(30), 4))
    assert (doubled.low, doubled.high) == pytest.approx((alone.low, alone.high))
    assert alone.sd is not None
    assert doubled.sd == pytest.approx(2 * alone.sd), "four of them count as one"
    assert doubled.p == alone.p


def test_float_noise_is_no_gain() -> None:
    base = np.full(10, 0.3)
    found = paired_gain(base + 1e-15, base)
    assert (found.difference, found.p, found.ties) == (0.0, 1.0, 10)
    assert decide_verdict(found.low, found.high) == "keep"
