"""Coverage of intervals by group where the groups are of very unequal size."""

from __future__ import annotations

from itertools import product

import numpy as np

from benchmarks.studies.simulations.promise import Promise
from fusion_bench.data.ordering import FloatArray, IntArray
from fusion_bench.stats.intervals import bell_mccaffrey_freedom, cr2_standard_error, t_quantile

TITLE = "Intervals by group: CR2 with Bell–McCaffrey degrees of freedom"
DESCRIPTION = """\
20 groups; a query's difference is √ρ times a normal value of its group plus √(1 − ρ) times its own,
so the true mean is 0. Promised: the 95 % interval covers it in 93 to 97 % of the runs. Beside it
stands the usual cluster-robust interval: G/(G − 1) times the squared sums, with G − 1 degrees of
freedom. Without a promise: sizes of which three hold four fifths of the queries, and skewed data,
where a group's value is exponential, minus 1, and ρ = .8."""
DRAWS = 20_000

#: Queries of each of 20 groups.
SIZES = {
    "14 of 1, 3 of 5, 2 of 15, 1 of 30": [1] * 14 + [5] * 3 + [15] * 2 + [30],
    "15 of 2, 4 of 10, 1 of 40": [2] * 15 + [10] * 4 + [40],
    "20 of 8": [8] * 20,
    "10 of 1, 4 of 2, 3 of 4, 20, 40, 60": [1] * 10 + [2] * 4 + [4] * 3 + [20, 40, 60],
}
#: Sizes for which nothing is promised.
EXTREME = "10 of 1, 4 of 2, 3 of 4, 20, 40, 60"
#: Correlation inside a group, and whether the group's values are skewed.
VALUES = ((0.0, False), (0.3, False), (0.8, False), (0.8, True))
SEED = 11


def run(*, draws: int) -> list[Promise]:
    """Coverage of each design."""
    promises: list[Promise] = []
    for n, ((name, listed), (rho, is_skewed)) in enumerate(product(SIZES.items(), VALUES)):
        sizes = np.array(listed)
        sums = _draw_sums(np.random.default_rng([SEED, n]), sizes, rho, draws, is_skewed=is_skewed)
        cr2, usual = count_covered(sums, sizes)
        design = f"{name}; ρ = {rho:g}{', skewed' * is_skewed}"
        if is_skewed or name == EXTREME:
            promises.append(Promise(design, "CR2 covers", cr2, draws))
        else:
            promises += Promise.from_range(design, "CR2 covers", cr2, draws, 0.93, 0.97)
        promises.append(Promise(design, "usual interval covers", usual, draws))
    return promises


def count_covered(sums: FloatArray, sizes: IntArray) -> tuple[int, int]:
    """Runs in which 0 is inside the CR2 interval, and inside the usual one.

    Args:
        sums: Shape (draws, G): sum of each group's differences.
        sizes: Shape (G,): queries of each group.
    """
    means = sums.sum(axis=1) / sizes.sum()
    residuals = sums - means[:, None] * sizes
    cr2 = cr2_standard_error(residuals, sizes)
    count = len(sizes)
    plain = np.sqrt(count / (count - 1) * (residuals**2).sum(axis=1)) / sizes.sum()
    freedoms = (bell_mccaffrey_freedom(sizes), count - 1)
    covered = [
        int((np.abs(means) <= t_quantile(freedom, 0.975) * error).sum())
        for freedom, error in zip(freedoms, (cr2, plain), strict=True)
    ]
    return covered[0], covered[1]


def _draw_sums(
    random: np.random.Generator, sizes: IntArray, rho: float, draws: int, *, is_skewed: bool
) -> FloatArray:
    """Sums of the differences of each group, shape (draws, G); a sum of n normals is a normal."""
    shape = (draws, len(sizes))
    shared = random.standard_exponential(shape) - 1 if is_skewed else random.standard_normal(shape)
    single = random.standard_normal(shape)
    return np.asarray(np.sqrt(rho) * sizes * shared + np.sqrt((1 - rho) * sizes) * single)
