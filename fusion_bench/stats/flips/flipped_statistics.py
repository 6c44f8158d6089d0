"""The t of a paired difference after groups change their signs.

With S_g the sum of the n_g differences of group g, N queries and w_g = 1 / (1 − n_g/N), the
mean is m = Σ S_g / N, and CR2's variance under working independence is
V = Σ w_g (S_g − n_g m)² / N² (Bell & McCaffrey 2002). A flip changes only Σ S_g and Σ w_g n_g S_g,
so all flips are one or two matrix products.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fusion_bench.data.ordering import FloatArray
from fusion_bench.data.rows.grouped_rows import number_by_appearance
from fusion_bench.stats.flips.shares import NOISE
from fusion_bench.stats.flips.sign_flips import hash_group_ids

#: A column's absolute values sum to at most 2^50 units: all its sums are exact on any machine.
FIXED_POINT_BITS = 50


@dataclass(frozen=True)
class FlippedStatistics:
    """Differences of one set of queries, ready to be flipped, and their residuals.

    A residual is a difference − its row's mean. Its sums after a flip follow from those of the
    difference and of a row of ones, so that both are flipped at the price of one.

    Attributes:
        ids: The G ids of the groups, those in which some difference is not 0 first.
        changed: How many these are.
        units: Shape (R + 1, G): S_g of each row in whole units; the last row is that of ones.
        scales: Shape (R + 1,): a unit of each row, as a part of N.
        weighted_units: w_g n_g S_g likewise; None where all groups are of one size.
        weighted_scales: A unit of each of these rows, or the common factor w_g n_g.
        means: Shape (R,): m.
        squares: Shape (R,): Σ w_g S_g².
        residual_squares: Shape (R,): Σ w_g (S_g − n_g m)²; 0 where residuals are float noise.
        curvature: Σ w_g n_g² over all groups.
        queries: N.
    """

    ids: tuple[str, ...]
    changed: int
    units: FloatArray
    scales: FloatArray
    weighted_units: FloatArray | None
    weighted_scales: FloatArray
    means: FloatArray
    squares: FloatArray
    residual_squares: FloatArray
    curvature: float
    queries: int

    def keys(self, seed: int) -> NDArray[np.uint64]:
        """(G,): what the groups' signs are drawn from."""
        return hash_group_ids(seed, self.ids)

    def observe(self) -> FloatArray:
        """(R,): t² / (1 + t²) as observed."""
        return self.compute(np.ones((len(self.ids), 1)))[:, 0]

    def compute(self, flips: FloatArray) -> FloatArray:
        """t² / (1 + t²) after each flip, in [0, 1]; 0 where t is undefined.

        Args:
            flips: Shape (G, B): 1 = a group keeps its sign, 0 = it is flipped. The changed
                groups are enough.

        Returns:
            Shape (R, B).
        """
        means, weighted = self._sum_rows(slice(-1), flips[: self.changed])
        return self.to_shares(means, weighted, self.squares)

    def compute_both(self, flips: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The same of the differences and of the residuals; ``flips`` has all G groups."""
        means, weighted = self._sum_rows(slice(-1), flips[: self.changed])
        shares = self.to_shares(means, weighted, self.squares)
        residuals = self._center(means, weighted, flips)
        return shares, self.to_shares(*residuals, self.residual_squares)

    def flip_residuals(self, flips: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Σ S_g / N and Σ w_g n_g S_g of the residuals after each flip, (R, B) each."""
        means, weighted = self._sum_rows(slice(-1), flips[: self.changed])
        return self._center(means, weighted, flips)

    def to_shares(self, means: FloatArray, weighted: FloatArray, squares: FloatArray) -> FloatArray:
        """t² / (1 + t²) of flipped rows, shape (R, B).

        Args:
            means: Shape (R, B): Σ S_g / N.
            weighted: Shape (R, B): Σ w_g n_g S_g.
            squares: Shape (R,): Σ w_g S_g²; where it is 0, t is undefined.
        """
        # N² V = Σ w S² − 2 m Σ w n S + m² Σ w n²
        variance = (self.curvature * means - 2 * weighted) * means + squares[:, None]
        squared = (means * self.queries) ** 2
        whole = squared + np.maximum(variance, 0.0)
        is_known = (whole > 0) & (squares > 0)[:, None]
        return np.divide(squared, whole, out=np.zeros_like(whole), where=is_known)

    def _sum_rows(self, rows: slice, flips: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Σ S_g / N and Σ w_g n_g S_g of some rows after each flip of the first groups."""
        count = len(flips)
        means = _flip(self.units[rows, :count], flips) * self.scales[rows, None]
        if self.weighted_units is None:
            return means, means * self.weighted_scales[rows, None]
        weighted = _flip(self.weighted_units[rows, :count], flips)
        return means, weighted * self.weighted_scales[rows, None]

    def _center(
        self, means: FloatArray, weighted: FloatArray, flips: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        ones, weighted_ones = self._sum_rows(slice(-1, None), flips)
        return means - self.means[:, None] * ones, weighted - self.means[:, None] * weighted_ones


def prepare_flips(differences: Sequence[FloatArray], group_ids: Sequence[str]) -> FlippedStatistics:
    """Sum the differences by group.

    Args:
        differences: R arrays of shape (Q,), on the same queries; finite.
        group_ids: The group of each of the Q queries.
    """
    codes, names = number_by_appearance(group_ids)
    queries, sizes = len(codes), np.bincount(codes).astype(np.float64)
    if len(sizes) < 2:  # one group has no variance
        return _no_variance(len(differences), queries)
    weights = 1 / (1 - sizes / queries)
    whole, shifts = _fixed_point(np.stack([*differences, np.ones(queries)]))
    units = np.stack([_sum_by_group(row, codes, len(sizes)) for row in whole])
    sums = np.ldexp(units, -shifts[:, None])
    is_changed = _sum_by_group(np.abs(whole[:-1]).max(axis=0, initial=0), codes, len(sizes)) > 0
    order = np.argsort(~is_changed, kind="stable")
    scales = np.ldexp(1.0, -shifts) / queries
    factors = weights * sizes
    weighted_units, weighted_scales = None, np.full(len(sums), factors[0] * queries)
    if sizes.min() != sizes.max():
        weighted_units, shifts = _fixed_point(sums * factors)
        weighted_scales = np.ldexp(1.0, -shifts)
        weighted_units = weighted_units[:, order]
    means = np.array([math.fsum(row.tolist()) / queries for row in sums[:-1]])
    squares = _sum_squares(sums[:-1], weights)
    residual_squares = _sum_squares(sums[:-1] - means[:, None] * sizes, weights)
    residual_squares[residual_squares <= NOISE**2 * squares] = 0.0
    return FlippedStatistics(
        ids=tuple(names[i] for i in order),
        changed=int(is_changed.sum()),
        units=units[:, order],
        scales=scales,
        weighted_units=weighted_units,
        weighted_scales=weighted_scales,
        means=means,
        squares=squares,
        residual_squares=residual_squares,
        curvature=math.fsum((weights * sizes**2).tolist()),
        queries=queries,
    )


def _no_variance(rows: int, queries: int) -> FlippedStatistics:
    """Nothing to flip: t is undefined."""
    nothing, zeros = np.empty((rows + 1, 0)), np.zeros(rows)
    scales = np.zeros(rows + 1)
    return FlippedStatistics(
        (), 0, nothing, scales, None, scales, zeros, zeros, zeros, 0.0, queries
    )


def _sum_squares(sums: FloatArray, weights: FloatArray) -> FloatArray:
    """(R,): Σ w_g S_g² of each row, independent of the order of groups."""
    return np.array([math.fsum((weights * row**2).tolist()) for row in sums])


def _sum_by_group(row: FloatArray, codes: NDArray[np.int64], count: int) -> FloatArray:
    return np.bincount(codes, weights=row, minlength=count).astype(np.float64)


def _fixed_point(values: FloatArray) -> tuple[FloatArray, NDArray[np.int64]]:
    """Rows as whole units of 2^−shift, and the shifts."""
    sizes = [math.fsum(np.abs(row).tolist()) for row in values]
    shifts = np.array([FIXED_POINT_BITS - math.frexp(size)[1] for size in sizes], dtype=np.int64)
    return np.rint(np.ldexp(values, shifts[:, None])), shifts


def _flip(units: FloatArray, flips: FloatArray) -> FloatArray:
    """(R, B): sums of the rows after each flip, exact."""
    return np.asarray(2 * (units @ flips) - units.sum(axis=1)[:, None])
