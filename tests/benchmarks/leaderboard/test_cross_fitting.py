"""The gain of choosing on the queries that decide: the slow procedure, repeated for every flip."""

import numpy as np
import pytest

from benchmarks.leaderboard.cross_fitting import CrossFit, cross_fit
from benchmarks.leaderboard.flips import draw_flips, hash_group_ids
from fusion_bench.data.ordering import FloatArray, IntArray
from fusion_bench.errors import ConfigError
from fusion_bench.stats.intervals import estimate_mean
from fusion_bench.tune.trial_selection import shrunken_gains

FLIPS = 31


def make(groups: int, size: int, trials: int = 6) -> tuple[FloatArray, IntArray, list[str]]:
    rng = np.random.default_rng(groups + size)
    names = [f"g{n % groups}" for n in range(groups * size - (size > 1))]
    folds = np.array([int(name[1:]) % 3 for name in names])
    data = 0.8 + rng.normal(size=(trials, len(names)))
    return np.where(rng.random(data.shape) < 0.5, data, 0.0), folds, names


def fit(data: FloatArray, folds: IntArray, names: list[str], seed: int = 0) -> CrossFit:
    return cross_fit(data, folds, names, flips=FLIPS, seed=seed, offset=np.zeros(data.shape[1]))


def slow_fit(data: FloatArray, folds: IntArray, codes: IntArray) -> tuple[FloatArray, float]:
    """By the definition, through the package's own selection and standard error."""
    values = np.zeros(len(folds))
    for fold in range(int(folds.max()) + 1):
        seen = folds != fold
        inner = np.unique(codes[seen], return_inverse=True)[1]
        gains = shrunken_gains(data[:, seen], np.zeros(int(seen.sum())), inner)
        if gains.max() > 1e-9:
            values[~seen] = data[int(gains.argmax()), ~seen]
    mean = estimate_mean(values, codes)
    return values, mean.mean / mean.standard_error if mean.standard_error > 0 else 0.0


@pytest.mark.parametrize(("groups", "size"), [(30, 1), (12, 3)])
def test_it_is_the_slow_procedure_repeated_for_every_flip(groups: int, size: int) -> None:
    data, folds, names = make(groups, size)
    fitted = fit(data, folds, names, seed=3)
    ids, codes = np.unique(names, return_inverse=True)
    values, observed = slow_fit(data, folds, codes)
    assert fitted.values == pytest.approx(values)
    signs = 2 * draw_flips(hash_group_ids(3, [str(each) for each in ids]), 0, FLIPS) - 1
    flipped = [slow_fit(data * flip[codes], folds, codes)[1] for flip in signs.T]
    assert fitted.null == pytest.approx([observed, *flipped])


def test_where_the_default_is_chosen_everywhere_nothing_is_tested() -> None:
    fitted = fit(-np.ones((2, 20)), np.arange(20) % 5, list(map(str, range(20))))
    assert fitted.chosen.tolist() == [-1] * 5
    assert not fitted.values.any()
    assert fitted.null[0] == 0


@pytest.mark.parametrize("folds", [[0, 0, 0], [0, 1, 1]])
def test_a_group_stands_in_one_fold(folds: list[int]) -> None:
    with pytest.raises(ConfigError, match="two or more"):
        fit(np.ones((1, 3)), np.array(folds), ["a", "a", "b"])
