"""Means over queries or groups of queries: random draws, variance, intervals, bounds.

Queries of one group, such as one topic asked twice, are correlated, so intervals and sign flips go
by group. Without groups each query is one. The labels of the groups do not matter.

Random numbers are the raw words of PCG64, whose stream numpy guarantees; the methods of its
Generator have no such guarantee. A seed therefore gives the same numbers on every machine.

Working independence: the queries are taken as uncorrelated with equal variance σ² to correct the
small-sample bias of the cluster-robust variance, which is then exact under that model. The
variance itself allows any correlation inside a group (Bell & McCaffrey 2002, "Bias reduction in
standard errors for linear regression with multi-stage samples"; Pustejovsky & Tipton 2018,
equations 5, 6 and 11, for a regression on a constant).

The t bound trusts the spread of the sample. Where a change loses 1 on one query in 300, a sample of
200 queries often holds no such query, and the t bound then promises what is not so. This bound
assumes only that no difference is below −1.

A gambler bets a share λ on every query that its difference exceeds μ. The capital is the product
of 1 + λ(d − μ). If the true mean is at most μ, its expectation is at most 1 for every λ that never
makes it negative, so a capital of 1/α has a probability of at most α (Markov). The bound is the
smallest μ that leaves the mean capital over a fixed grid of λ below 1/α: Waudby-Smith & Ramdas
2024, "Estimating means of bounded random variables by betting", sections 4 and 5, with constant
bets, so that the order of the queries is irrelevant.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import Final

import numpy as np
from numpy.typing import NDArray

from fusion_bench.data.ordering import NOISE, FloatArray, IntArray
from fusion_bench.errors import ConfigError, DataError


def draw_queries(queries: Collection[str], count: int, *, seed: int = 0) -> tuple[str, ...]:
    """Draw queries at random, without replacement.

    The queries are sorted by a SHA-256 of seed and id, and the first ones are drawn. So each set of
    ``count`` queries is as likely, whatever the order of ``queries``, and a larger ``count`` adds
    queries to those that a smaller one drew.

    Args:
        queries: Their ids, each once.
        count: How many to draw.
        seed: Another one draws another sample.

    Raises:
        ConfigError: There are not so many queries, or fewer than one is asked for.

    >>> draw_queries(["q1", "q2", "q3", "q4"], 2, seed=1)
    ('q4', 'q2')
    >>> draw_queries(["q1", "q2", "q3", "q4"], 3, seed=1)
    ('q4', 'q2', 'q1')
    """
    if not 1 <= count <= len(queries):
        raise ConfigError(
            f"a sample of {count} queries: from 1 to {len(queries)}, which is how many there are"
        )

    def sort_key(query: str) -> tuple[bytes, str]:
        return hashlib.sha256(f"{seed}\0{query}".encode()).digest(), query

    return tuple(sorted(queries, key=sort_key)[:count])


#: Resamples are drawn in blocks of about this size: bounded memory, and it stays in the cache.
BLOCK_BYTES = 1 << 22


def group_codes(groups: IntArray | None, queries: int) -> tuple[IntArray, int]:
    """Codes 0 … G−1 in order of first appearance, and G."""
    if groups is None:
        return np.arange(queries, dtype=np.int64), queries
    if groups.shape != (queries,):
        raise ConfigError(
            f"groups: need one code per query, shape ({queries},), not {groups.shape}"
        )
    if (groups == np.arange(queries)).all():
        return groups, queries
    labels, first, inverse = np.unique(groups, return_index=True, return_inverse=True)
    new_codes = np.empty(len(labels), dtype=np.int64)
    new_codes[np.argsort(first)] = np.arange(len(labels))
    return new_codes[inverse], len(labels)


def draw_groups(count: int, resamples: int, seed: int) -> Iterator[IntArray]:
    """Groups drawn with replacement, in blocks of shape (b, G): whole resamples, one a row.

    Args:
        count: G; each of 0 … G−1 is as likely, to within G/2^32.
        resamples: Rows over all blocks.
        seed: Seed of the draws; the size of the blocks changes no draw.
    """
    for words in random_words(seed, resamples, -(-count // 2), row_bytes=24 * count):
        halves = words.astype("<u8", copy=False).view("<u4")[:, :count].astype(np.int64)
        halves *= count
        halves >>= 32
        yield halves


def random_words(
    seed: int, rows: int, width: int, *, row_bytes: int
) -> Iterator[NDArray[np.uint64]]:
    """Random words of shape (block, width), ``rows`` in all; no block's size changes a word."""
    if seed < 0:
        raise ConfigError(f"seed: must be 0 or more, not {seed}")
    source = np.random.PCG64(seed)
    step = max(1, BLOCK_BYTES // row_bytes)
    for start in range(0, rows, step):
        block = min(step, rows - start)
        yield source.random_raw(block * width).reshape(block, width)


def check_values(values: FloatArray, *, dimensions: int) -> None:
    """Refuse values of another shape, none at all, and any that is not finite."""
    if values.ndim != dimensions:
        raise ConfigError(f"values: need {dimensions} dimension(s), not shape {values.shape}")
    if not values.shape[-1]:
        raise DataError("values: a mean needs at least one query, and there are no queries")
    if not np.isfinite(values).all():
        index = tuple(int(i) for i in np.argwhere(~np.isfinite(values))[0])
        raise DataError(f"values{list(index)}: must be finite, not {values[index]}")


def cr2_standard_error(residual_sums: FloatArray, sizes: IntArray) -> FloatArray:
    """Standard error of the mean of each row: √(Σ_g R_g² / (1 − n_g/N)) / N.

    With one query per group that is sd/√N.

    Args:
        residual_sums: Shape (…, G): R_g, the sum of value − mean over the queries of group g.
        sizes: Shape (G,): n_g, at least 1 each; N is their sum.

    Returns:
        Shape (…): NaN with one group.
    """
    if len(sizes) < 2:
        return np.full(residual_sums.shape[:-1], math.nan)
    queries = sizes.sum()
    return np.asarray(np.sqrt((residual_sums**2 * _inverse_leverage(sizes)).sum(axis=-1)) / queries)


def bell_mccaffrey_freedom(sizes: IntArray) -> float:
    """Degrees of freedom of the CR2 variance, by Satterthwaite's approximation.

    2·E[V]²/Var[V] under working independence. With w_g = n_g² / (1 − n_g/N):
    N² / (Σ n_g² + ((Σ w_g)² − Σ w_g²) / N²). Groups of equal size give G − 1; the more unequal
    they are, the fewer, down to 1.

    Args:
        sizes: Shape (G,): n_g, at least 1 each.

    Returns:
        At least 1; NaN with one group.
    """
    if len(sizes) < 2:
        return math.nan
    if sizes.min() == sizes.max():
        return float(len(sizes) - 1)  # what the formula gives, but for rounding
    queries = float(sizes.sum())
    squares = sizes.astype(np.float64) ** 2
    weights = squares * _inverse_leverage(sizes)
    cross = weights.sum() ** 2 - (weights**2).sum()
    return float(queries**2 / (squares.sum() + cross / queries**2))


def _inverse_leverage(sizes: IntArray) -> FloatArray:
    """1 / (1 − n_g/N), shape (G,)."""
    queries = sizes.sum()
    return np.asarray(queries / (queries - sizes))


#: Level of intervals and tests where nothing else is stated.
ALPHA = 0.05
#: The power of a minimum detectable difference or drop, and its normal quantile.
POWER = 0.8
POWER_QUANTILE: Final = NormalDist().inv_cdf(POWER)


@dataclass(frozen=True)
class MeanEstimate:
    """A mean over queries, its interval and its standard error.

    Attributes:
        mean: Mean over queries.
        low: Lower end of the interval; NaN with one group.
        high: Upper end; NaN likewise.
        sd: Sample standard deviation over queries; NaN with one query.
        standard_error: Standard error of the mean, by group; NaN with one group.
        queries: Q.
        groups: G; equals Q where no groups are declared.
        freedom: Degrees of freedom of the standard error: G − 1 with groups of equal size,
            fewer with unequal ones; NaN with one group.
        repeat_variance: What the repeats of the systems add to the variance of the mean, see
            ``stats.repeat_variance``; 0 with one trial.
    """

    mean: float
    low: float
    high: float
    sd: float
    standard_error: float
    queries: int
    groups: int
    freedom: float
    repeat_variance: float = 0.0

    def clip(self, least: float, most: float) -> MeanEstimate:
        """Clip the interval to where values can be; NaN stays NaN."""
        low, high = (min(max(end, least), most) for end in (self.low, self.high))
        return replace(self, low=low, high=high)

    @property
    def design_effect(self) -> float | None:
        """Variance of the mean by group ÷ that of as many independent queries (Kish 1965).

        1 without groups; None where no spread is known.
        """
        if not (self.sd > 0 and self.groups > 1):
            return None
        return (self.standard_error**2 - self.repeat_variance) * self.queries / self.sd**2


def estimate_mean(
    values: FloatArray, groups: IntArray | None = None, *, alpha: float = 0.05
) -> MeanEstimate:
    """Mean over queries with its 1 − ``alpha`` interval.

    The standard error is CR2's and the t quantile has Bell & McCaffrey's degrees of freedom, see
    :func:`cr2_standard_error`. With one query per group that is the one-sample (or paired) t
    interval.

    Args:
        values: Shape (Q,), finite: one system's values, or paired differences.
        groups: Shape (Q,), integer codes; None = every query is its own group.
        alpha: 1 − coverage.
    """
    if not 0 < alpha < 1:
        raise ConfigError(f"alpha: must be above 0 and below 1, not {alpha}")
    check_values(values, dimensions=1)
    codes, count = group_codes(groups, len(values))
    queries, mean = len(values), exact_mean(values)
    deviations = values - mean  # all exactly 0 when the values are constant
    sd = low = high = math.nan
    if queries > 1:
        sd = math.sqrt(math.fsum((deviations**2).tolist()) / (queries - 1))
    sizes = np.bincount(codes).astype(np.int64)
    residual_sums = np.bincount(codes, weights=deviations).astype(np.float64)
    error = float(cr2_standard_error(residual_sums, sizes))
    freedom = bell_mccaffrey_freedom(sizes)
    if count > 1:
        half_width = t_quantile(freedom, 1 - alpha / 2) * error
        low, high = mean - half_width, mean + half_width
    return MeanEstimate(mean, low, high, sd, error, queries, count, freedom)


def exact_mean(values: FloatArray) -> float:
    """Mean of (Q,) values, independent of their order, and exactly c if all are c."""
    first = float(values[0])
    return first if (values == first).all() else math.fsum(values.tolist()) / len(values)


def t_quantile(freedom: float, probability: float) -> float:
    """Quantile of Student's t."""
    from fusion_bench.util.special_functions import special  # late, as it is slow

    return float(special.stdtrit(freedom, probability))


def clopper_pearson(count: int, runs: int, confidence: float = 0.95) -> tuple[float, float]:
    """Interval of the probability of an event seen ``count`` times in ``runs`` independent trials.

    Clopper & Pearson 1934: the values that neither one-sided binomial test at
    (1 − confidence) / 2 rejects; its coverage is at least ``confidence``.

    Args:
        count: 0 … ``runs``.
        runs: At least 1.
        confidence: Coverage.
    """
    from fusion_bench.util.special_functions import special  # late, as it is slow

    tail = (1 - confidence) / 2
    low = 0.0 if count == 0 else float(special.betaincinv(count, runs - count + 1, tail))
    high = 1.0 if count == runs else float(special.betaincinv(count + 1, runs - count, 1 - tail))
    return low, high


#: Bets as shares of the greatest one, 1 / (μ − least possible value).
BETS = np.array([1.0, 0.9, 0.8, 0.5, 0.25, 0.1, 0.05, 0.025])
#: Stands for the logarithm of 0 in sums.
LOG_ZERO = -1e6
#: Least distance of μ from the least possible value, where the greatest bet would be infinite.
LEAST_GAP = 1e-9
#: Halvings of the interval that holds the bound.
HALVINGS = 60


def scale_groups(
    differences: FloatArray, groups: IntArray | None = None
) -> tuple[FloatArray, float]:
    """The values of independent units with the mean of the differences, and their least value.

    Without groups these are the differences, which are at least −1. With groups they are the sums
    of the groups ÷ the mean size n̄ of a group, which are at least −(largest size ÷ n̄).

    Args:
        differences: Shape (Q,).
        groups: Shape (Q,), codes; None = every query alone.

    Returns:
        Shape (G,), and r ≥ 1 such that no value is below −r.
    """
    codes, count = group_codes(groups, len(differences))
    sizes = np.bincount(codes, minlength=count)
    mean_size = len(differences) / count
    sums = np.bincount(codes, weights=differences, minlength=count)
    return sums / mean_size, float(sizes.max() / mean_size)


def log_returns(values: FloatArray, reach: float, mean: float) -> FloatArray:
    """Logarithm of 1 + λ(v − μ), shape (..., number of bets).

    Args:
        values: Any shape; at least −``reach``.
        reach: r.
        mean: μ.
    """
    ratios = np.maximum(np.asarray(values, dtype=np.float64) + reach, 0.0)
    ratios = ratios / max(mean + reach, LEAST_GAP) - 1
    returns = 1 + ratios[..., None] * BETS
    with np.errstate(divide="ignore"):
        return np.where(returns > 0, np.log(np.maximum(returns, 1e-300)), LOG_ZERO)


def log_capital(log_sums: FloatArray) -> FloatArray:
    """Logarithm of the mean capital; ``log_sums`` has one column a bet, in the last dimension."""
    return np.asarray(np.logaddexp.reduce(log_sums, axis=-1) - np.log(log_sums.shape[-1]))


def paired_difference(candidate: FloatArray, baseline: FloatArray) -> FloatArray:
    """Candidate − baseline, (Q,), float noise set to 0, as the test looks at signs."""
    difference = candidate - baseline
    return np.where(np.abs(difference) <= NOISE, 0.0, difference)


def bet_on_mean(sums: FloatArray, sizes: FloatArray) -> float:
    """One-sided p of "the true mean is at most 0"; 1 where a difference is beyond ±1.

    Args:
        sums: Shape (G,): sums of differences by unit.
        sizes: Shape (G,): their queries.
    """
    if (np.abs(sums) > sizes + NOISE * sizes.sum()).any():
        return 1.0
    mean_size = float(sizes.mean())
    returns = log_returns(sums / mean_size, float(sizes.max()) / mean_size, 0.0)
    return math.exp(-max(float(log_capital(returns.sum(axis=0))), 0.0))


def betting_bound(
    differences: FloatArray, groups: IntArray | None = None, *, alpha: float
) -> float:
    """The one-sided 1 − ``alpha`` lower bound of the mean; NaN where a difference is below −1.

    Args:
        differences: Shape (Q,), finite.
        groups: Shape (Q,), codes; None = every query alone.
        alpha: Probability that the true mean is below the bound, at most.
    """
    if differences.min() < -1:
        return np.nan
    values, reach = scale_groups(differences, groups)
    distinct, counts = np.unique(values, return_counts=True)  # most queries share a few values
    limit = -np.log(alpha)
    low, high = -reach, float(values.mean())  # the capital at the mean is at most 1 (Jensen)
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        if not low < middle < high:
            break
        returns = counts[:, None] * log_returns(distinct, reach, middle)
        if log_capital(returns.sum(axis=0)) < limit:
            high = middle
        else:
            low = middle
    return max(high, -1.0)  # the mean itself cannot be lower
