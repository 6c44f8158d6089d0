"""The gain of choosing on the queries that decide: the slow procedure, repeated for every flip."""

import math

import numpy as np
import pytest

from fusion_bench.data.ordering import FloatArray, IntArray
from fusion_bench.errors import ConfigError
from fusion_bench.stats.intervals import estimate_mean
from fusion_bench.stats.sign_flips import draw_flips, hash_group_ids
from fusion_bench.tune.cross_fitting import CrossFitRule, cross_fit
from fusion_bench.tune.trial_selection import shrunken_gains

FLIPS = 31


def make(groups: int, size: int, trials: int = 6) -> tuple[FloatArray, IntArray, list[str]]:
    rng = np.random.default_rng(groups + size)
    names = [f"g{n % groups}" for n in range(groups * size - (size > 1))]
    folds = np.array([int(name[1:]) % 3 for name in names])
    data = 0.8 + rng.normal(size=(trials, len(names)))
    return np.where(rng.random(data.shape) < 0.5, data, 0.0), folds, names


def slow_fit(
    data: FloatArray, folds: IntArray, codes: IntArray, rule: CrossFitRule
) -> tuple[FloatArray, float]:
    """By the definition, through the package's own selection and standard error."""
    values = np.zeros(len(folds))
    for fold in range(int(folds.max()) + 1):
        seen = folds != fold
        gains = data[:, seen].mean(axis=1)
        if rule == "shrinkage":
            inner = np.unique(codes[seen], return_inverse=True)[1]
            gains = shrunken_gains(data[:, seen], np.zeros(int(seen.sum())), inner)
        if gains.max() > 1e-9:
            values[~seen] = data[int(gains.argmax()), ~seen]
    mean = estimate_mean(values, codes)
    return values, mean.mean / mean.standard_error if mean.standard_error > 0 else 0.0


@pytest.mark.parametrize("rule", ["shrinkage", "best"])
@pytest.mark.parametrize(("groups", "size"), [(30, 1), (12, 3)])
def test_it_is_the_slow_procedure_repeated_for_every_flip(
    rule: CrossFitRule, groups: int, size: int
) -> None:
    data, folds, names = make(groups, size)
    fitted = cross_fit(data, folds, names, rule=rule, level=0.1, flips=FLIPS, seed=3)
    ids, codes = np.unique(names, return_inverse=True)
    values, observed = slow_fit(data, folds, codes, rule)
    assert fitted.values == pytest.approx(values)
    assert fitted.mean / fitted.standard_error == pytest.approx(observed)
    signs = 2 * draw_flips(hash_group_ids(3, [str(each) for each in ids]), 0, FLIPS) - 1
    flipped = [slow_fit(data * flip[codes], folds, codes, rule)[1] for flip in signs.T]
    null = np.array([observed, *flipped])
    shares = [float((side * null >= abs(observed) - 1e-9).mean()) for side in (1, -1)]
    assert fitted.p >= min(1.0, 2 * max(shares)) - 1e-12
    tails = [float(np.sort(side * null)[-3]) for side in (1, -1)]  # ⌊.1 · 32⌋ = 3
    assert fitted.critical >= max(tails) - 1e-9


@pytest.mark.parametrize("seed", range(8))
def test_p_and_the_interval_agree(seed: int) -> None:
    rng = np.random.default_rng(seed)
    data = rng.normal(size=(5, 24)) + 0.12 * seed
    names = [f"q{n}" for n in range(24)]
    fitted = cross_fit(data, np.arange(24) % 4, names, level=0.05, flips=399, seed=seed)
    low, high = fitted.interval
    assert (fitted.p <= 0.1) == (low > 0 or high < 0)


def test_the_order_of_queries_changes_nothing() -> None:
    data, folds, names = make(30, 1)
    turned = cross_fit(data[:, ::-1], folds[::-1], names[::-1], flips=FLIPS)
    straight = cross_fit(data, folds, names, flips=FLIPS)
    assert (turned.p, turned.critical) == pytest.approx((straight.p, straight.critical))
    assert turned.values[::-1] == pytest.approx(straight.values)


def test_where_the_default_is_chosen_everywhere_nothing_is_tested() -> None:
    fitted = cross_fit(-np.ones((2, 20)), np.arange(20) % 5, list(map(str, range(20))), flips=FLIPS)
    assert fitted.chosen.tolist() == [-1] * 5
    assert (fitted.mean, fitted.p) == (0.0, 1.0)


@pytest.mark.parametrize("folds", [[0, 0, 0], [0, 1, 1]])
def test_a_group_stands_in_one_fold(folds: list[int]) -> None:
    with pytest.raises(ConfigError, match="two or more"):
        cross_fit(np.ones((1, 3)), np.array(folds), ["a", "a", "b"])


def test_too_few_flips_for_the_level_show_nothing() -> None:
    data, folds, names = make(30, 1)
    assert math.isinf(cross_fit(data, folds, names, level=0.001, flips=FLIPS).critical)
