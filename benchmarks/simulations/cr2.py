"""Coverage of intervals by group where the groups are of very unequal size."""

from __future__ import annotations

from itertools import product

import numpy as np

from benchmarks.simulations.promise import Promise
from fusion_bench.data.ordering import FloatArray, IntArray
from fusion_bench.stats.cluster_variance import bell_mccaffrey_freedom, cr2_standard_error
from fusion_bench.stats.intervals import t_quantile

TITLE = "Intervals by group: CR2 with Bell–McCaffrey degrees of freedom"
DESCRIPTION = """\
20 groups; a query's difference is √ρ times a normal value of its group plus √(1 − ρ) times its own,
so the true mean is 0. Promised: the 95 % interval covers it in 93 to 97 % of the runs. Beside it
stands the usual cluster-robust interval, G/(G − 1) times the squared sums with G − 1 degrees of
freedom, which promises nothing. Skewed: the group's value is exponential, minus 1; it promises
nothing either."""
DRAWS = 20_000

#: Queries of each of 20 groups.
SIZES = {
    "1 × 6, 2 × 4, 4 × 4, 8 × 3, 16, 24, 32": [1] * 6 + [2] * 4 + [4] * 4 + [8] * 3 + [16, 24, 32],
    "2 × 15, 10 × 4, 40": [2] * 15 + [10] * 4 + [40],
    "1 × 10, 2 × 4, 4 × 3, 20, 40, 60": [1] * 10 + [2] * 4 + [4] * 3 + [20, 40, 60],
    "8 × 20": [8] * 20,
}
CORRELATIONS = (0.0, 0.3, 0.8)
SEED = 11


def run(*, draws: int) -> list[Promise]:
    """Coverage of each design."""
    promises: list[Promise] = []
    designs = product(SIZES.items(), (*CORRELATIONS, "skewed"))
    for n, ((name, sizes), correlation) in enumerate(designs):
        random = np.random.default_rng([SEED, n])
        sums = _draw_sums(random, np.array(sizes), correlation, draws)
        cr2, plain = count_covered(sums, np.array(sizes))
        kind = "skewed, ρ = .8" if correlation == "skewed" else f"ρ = {correlation:g}"
        design = f"sizes {name}; {kind}"
        if correlation == "skewed":
            promises.append(Promise(design, "CR2 covers", cr2, draws))
        else:
            promises += Promise.from_range(design, "CR2 covers", cr2, draws, 0.93, 0.97)
        promises.append(Promise(design, "usual interval covers", plain, draws))
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
    random: np.random.Generator, sizes: IntArray, correlation: float | str, draws: int
) -> FloatArray:
    """Sums of the differences of each group, shape (draws, G); a sum of n normals is a normal."""
    rho = 0.8 if isinstance(correlation, str) else correlation
    shape = (draws, len(sizes))
    effects = random.standard_normal(shape)
    if isinstance(correlation, str):
        effects = random.standard_exponential(shape) - 1
    return np.asarray(
        np.sqrt(rho) * sizes * effects + np.sqrt((1 - rho) * sizes) * random.standard_normal(shape)
    )
