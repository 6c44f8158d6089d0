"""Families in which systems have trials: nothing changes without them, and answers agree with p."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from fusion_bench.data.ordering import FloatArray
from fusion_bench.errors import DataError
from fusion_bench.stats.comparison import Comparison
from fusion_bench.stats.comparison_family import ComparedValues, compare_alone, compare_family
from fusion_bench.stats.corrections import Correction
from fusion_bench.stats.max_t import FamilyRow, max_t
from fusion_bench.stats.trial_variance import TrialSpread, TrialTerm, measure_trial_spread
from tests.stats.trials.cases import crossed

QUERIES = 40
KEYS = tuple(map(str, range(QUERIES)))


def table(systems: dict[str, FloatArray], baseline: str = "base") -> ComparedValues:
    """Systems by their trials, shape (T, Q) each."""
    values = {name: trials.mean(axis=0) for name, trials in systems.items()}
    repeated = {name: trials for name, trials in systems.items() if len(trials) > 1}
    return ComparedValues("m", values, baseline, KEYS, trials=repeated)


def systems(trial_sd: float, *, shift: float = 0.0, seed: int = 0) -> dict[str, FloatArray]:
    """A baseline and two systems of three trials each, on queries that they share."""
    shared = crossed(1, QUERIES, residual_sd=0.0, seed=seed + 100)
    return {
        name: shared
        + shift * i
        + crossed(3, QUERIES, query_sd=0.1, trial_sd=trial_sd, seed=seed + i)
        for i, name in enumerate(("base", "first", "second"))
    }


def compare(values: ComparedValues, correction: Correction = "max_t") -> tuple[Comparison, ...]:
    return compare_family([values], correction=correction, seed=3, resamples=2_000)[0]


@pytest.mark.parametrize("correction", ["max_t", "holm", "none"])
def test_trials_without_an_effect_leave_every_number_as_it_was(correction: Correction) -> None:
    steady = {name: np.repeat(v[:1], 3, axis=0) for name, v in systems(0.0, shift=0.05).items()}
    with_trials = table(steady)
    without = ComparedValues("m", with_trials.values, "base", KEYS)
    for row, plain in zip(
        compare(with_trials, correction), compare(without, correction), strict=True
    ):
        assert (row.trial_share, plain.trial_share) == (0.0, None)
        names = ("low", "high", "p", "p_adjusted", "critical_value", "answer", "freedom")
        assert [getattr(row, n) for n in names] == [getattr(plain, n) for n in names]


@pytest.mark.parametrize("correction", ["max_t", "holm", "none"])
@pytest.mark.parametrize("seed", range(6))
def test_the_interval_without_zero_is_the_small_p(correction: Correction, seed: int) -> None:
    rows = compare(table(systems(0.03, shift=0.05, seed=10 * seed)), correction)
    for row in rows:
        assert row.p_adjusted is not None
        assert row.p_adjusted >= row.p
        if correction != "holm":  # its intervals are not adjusted
            assert (row.p_adjusted <= 0.05) == (row.low > 0 or row.high < 0)


def test_an_effect_of_trials_widens_the_interval_of_its_systems_only() -> None:
    values = systems(0.0, shift=0.05)
    values["second"] = values["second"] + np.array([[-0.2], [0.0], [0.2]])
    values["base"] = values["base"][:1]
    unsteady = compare(table(values))
    flat = ComparedValues("m", table(values).values, "base", KEYS)
    plain = compare(flat)
    assert unsteady[1].trial_share is not None
    assert unsteady[1].trial_share > 0.5
    assert unsteady[1].high - unsteady[1].low > 1.5 * (plain[1].high - plain[1].low)
    assert unsteady[1].freedom == plain[1].freedom  # three trials of one side: an upper limit
    assert unsteady[0].freedom == plain[0].freedom


def test_a_measure_that_decides_nothing_has_the_same_variance() -> None:
    values = systems(0.1, shift=0.05)
    (alone, _), (family, _) = compare_alone(table(values)), compare(table(values))
    assert alone.standard_error == family.standard_error
    assert alone.freedom == family.freedom
    assert alone.p == family.p
    spreads = [measure_trial_spread(values[name]) for name in ("first", "base")]
    mean_difference = values["first"].mean(axis=0) - values["base"].mean(axis=0)
    variance = stats.sem(mean_difference) ** 2 + sum(spread.variance for spread in spreads) / 3
    assert alone.standard_error == pytest.approx(np.sqrt(variance))


def test_one_row_of_trials_has_students_interval() -> None:
    values = {name: trials for name, trials in systems(0.1).items() if name != "second"}
    (row,) = compare(table(values))
    assert row.critical_value >= stats.t.ppf(0.975, row.freedom) - 1e-9
    assert row.critical_value == pytest.approx(stats.t.ppf(0.975, row.freedom), rel=0.1)


def test_the_critical_value_of_flips_is_carried_over_by_its_tail() -> None:
    """Of 32 flips the largest t decides, which lies far above Student's quantile."""
    difference = np.array([0.3, 0.1, 0.4, 0.1, 0.5])
    keys = tuple(map(str, range(5)))
    spread = TrialSpread(3, (0.0, 0.1, 0.2), between=0.01, within=0.001, within_freedom=18.0)
    row = FamilyRow(difference, keys, None, (TrialTerm(spread, 1 / 3),))
    family = max_t([row], seed=1)
    [result] = family.rows
    freedom = result.estimate.freedom
    assert family.critical_value > stats.t.ppf(0.975, 4)
    tail = stats.t.sf(family.critical_value, 4)
    assert result.critical_value == pytest.approx(stats.t.isf(tail, freedom))
    assert result.critical_value > stats.t.ppf(0.975, freedom)


def test_systems_of_the_same_means_and_other_trials_are_two_rows() -> None:
    values = systems(0.0, shift=0.05)
    moved = values["first"] + np.array([[-0.3], [0.0], [0.3]])
    both = {"base": values["base"][:1], "first": values["first"], "second": moved}
    first, second = compare(table(both), "holm")
    assert first.difference == pytest.approx(second.difference)
    assert first.p < second.p


def test_trials_of_other_queries_are_refused() -> None:
    values = systems(0.0)
    broken = ComparedValues(
        "m", table(values).values, "base", KEYS, trials={"base": np.ones((3, 0))}
    )
    with pytest.raises(DataError):
        compare(broken)
