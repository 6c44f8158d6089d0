"""Tuned rows of the leaderboard: exact nulls of chosen parameters, and what is left of answers."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.studies.leaderboard.tuned_family import adjust_for_choice
from fusion_bench.data.ordering import FloatArray
from fusion_bench.stats.comparison import Comparison
from fusion_bench.stats.comparison_family import ComparedValues, compare_family
from fusion_bench.tune.cross_fitting import CrossFit, cross_fit

QUERIES = 60
NAMES = [f"q{n}" for n in range(QUERIES)]
FOLDS = np.arange(QUERIES) % 2


def compare(values: FloatArray) -> Comparison:
    table = ComparedValues("m", {"0": np.zeros(QUERIES), "1": values}, "0", tuple(NAMES))
    [[row]] = compare_family([table], resamples=500)
    return row


def fit(differences: FloatArray, offset: FloatArray | None = None, flips: int = 199) -> CrossFit:
    return cross_fit(differences, FOLDS, NAMES, flips=flips, offset=offset)


def test_the_flips_of_the_whole_procedure_decide() -> None:
    rng = np.random.default_rng(1)
    clear = fit(0.1 + 0.05 * rng.normal(size=(5, QUERIES)))
    row = compare(clear.values)
    assert row.answer == "better"
    [kept] = adjust_for_choice([row], [clear.null[1:].tolist()])
    assert kept.answer == "better"
    assert kept.low > 0
    [lost] = adjust_for_choice([row], [[1.1 * row.difference / row.standard_error] * 199])
    assert lost.answer == "not shown"
    assert lost.low < 0 < row.low
    assert lost.p_adjusted == 1.0


def test_an_interval_that_widens_loses_its_margin() -> None:
    values = 0.002 + 0.0002 * np.random.default_rng(2).normal(size=QUERIES)
    row = compare(values)
    assert row.answer == "better, by less than min_gain"
    wide = [0.99 * row.difference / row.standard_error] * 199
    [kept] = adjust_for_choice([row], [wide])
    assert kept.answer == "better, by less than min_gain"
    [row], null = [compare(values - 0.002)], [400.0] * 199
    assert row.answer == "equivalent"
    assert adjust_for_choice([row], [null])[0].answer == "not shown"


def test_a_row_without_any_difference_stays_as_it_is() -> None:
    row = compare(np.zeros(QUERIES))
    assert adjust_for_choice([row], [[0.0] * 199]) == [row]


def test_a_null_is_answered_in_five_percent_by_the_adjustment_alone() -> None:
    """Two folds, 50 trials with a common part."""
    rng, draws, shown = np.random.default_rng(3), 400, np.zeros(2, dtype=int)
    for _ in range(draws):
        trials = 2 * rng.normal(size=QUERIES) + rng.normal(size=(50, QUERIES))
        found = cross_fit(trials, FOLDS, NAMES, flips=99, rule="best")
        t = abs(found.null[0])
        shown += [t > 2.0, t >= np.sort(np.abs(found.null))[-5]]
    assert shown[0] > shown[1]
    assert shown[1] <= 0.075 * draws


def test_a_rival_that_is_the_same_leaves_nothing() -> None:
    trials = np.random.default_rng(4).normal(size=(6, QUERIES))
    same = cross_fit(trials, FOLDS, NAMES, flips=19, rival=trials)
    assert not same.values.any()
    assert same.p == 1.0
    assert not same.null.any()


def test_an_offset_is_flipped_with_the_trials() -> None:
    """Trials against the default, and the default against the baseline: as one difference."""
    rng = np.random.default_rng(5)
    offset = rng.normal(size=QUERIES) + 0.5
    alone = fit(np.zeros((1, QUERIES)), offset, flips=99)
    assert alone.values.tolist() == offset.tolist()
    direct = cross_fit(offset[None], FOLDS, NAMES, flips=99, rule="best")
    t = offset.mean() / (offset.std(ddof=1) / np.sqrt(QUERIES))
    assert alone.mean / alone.standard_error == pytest.approx(t)
    assert direct.mean == pytest.approx(alone.mean)


def test_a_rival_chooses_by_itself() -> None:
    rng = np.random.default_rng(6)
    first, second = 0.4 + rng.normal(size=(2, 4, QUERIES))
    offset = rng.normal(size=QUERIES)
    pair = cross_fit(first, FOLDS, NAMES, flips=9, offset=offset, rival=second)
    apart = [cross_fit(each, FOLDS, NAMES, flips=9).values for each in (first, second)]
    assert pair.values == pytest.approx(offset + apart[0] - apart[1])
