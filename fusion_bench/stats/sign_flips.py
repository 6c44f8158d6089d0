"""Statistics of paired differences after groups of queries change their signs at random.

A group's sign depends on nothing else, so neither the order of queries, systems and datasets nor
what else is tested changes it.

With S_g the sum of the n_g differences of group g, N queries and w_g = 1 / (1 − n_g/N), the
mean is m = Σ S_g / N, and CR2's variance under working independence is
V = Σ w_g (S_g − n_g m)² / N² (Bell & McCaffrey 2002). A flip changes only Σ S_g and Σ w_g n_g S_g,
so all flips are one or two matrix products.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fusion_bench.data.grouped_rows import number_by_appearance
from fusion_bench.data.ordering import FloatArray
from fusion_bench.errors import ConfigError
from fusion_bench.util.digests import mix_words
from fusion_bench.util.formatting import check_wanted

#: The increment and the two multipliers of SplitMix64 (Steele, Lea & Flood 2014).
GAMMA = np.uint64(0x9E3779B97F4A7C15)
#: A word holds the signs of so many draws.
WORD_BITS = 64


def hash_group_ids(seed: int, ids: Sequence[str]) -> NDArray[np.uint64]:
    """(G,): one 64-bit key for each group id.

    Raises:
        ConfigError: ``seed`` is below 0.
    """
    if seed < 0:
        raise ConfigError(f"seed: must be 0 or more, not {seed}")
    start = hashlib.blake2b(f"{seed}\0".encode(), digest_size=8)
    keys = np.empty(len(ids), dtype=np.uint64)
    for i, name in enumerate(ids):
        state = start.copy()
        state.update(name.encode("utf-8", "surrogatepass"))
        keys[i] = int.from_bytes(state.digest(), "little")
    return keys


def draw_flips(keys: NDArray[np.uint64], start: int, stop: int) -> FloatArray:
    """Whether each group keeps its sign in each draw.

    Args:
        keys: Shape (G,), from :func:`hash_group_ids`.
        start: The first draw.
        stop: Behind the last draw.

    Returns:
        Shape (G, stop − start): 1 = keeps its sign, 0 = is flipped.
    """
    check_wanted()
    first = start // WORD_BITS
    blocks = np.arange(first, -(-stop // WORD_BITS), dtype=np.uint64)
    words = mix_words(keys[:, None] + (blocks + np.uint64(1)) * GAMMA)
    octets = words.astype("<u8", copy=False).view(np.uint8)
    offset = start - first * WORD_BITS
    bits = np.unpackbits(octets, axis=1, count=offset + stop - start, bitorder="little")
    return bits[:, offset:].astype(np.float64)


def enumerate_flips(count: int) -> FloatArray:
    """Every assignment of signs to ``count`` groups, as :func:`draw_flips`; the last keeps all."""
    numbers = np.arange(2**count, dtype=np.int64)
    return ((numbers >> np.arange(count)[:, None]) & 1).astype(np.float64)


#: Shares up to this far apart are equal, and so is a share to 1.
NOISE = 1e-12
#: A decision is clear where the share of draws is so many standard errors from α.
CLEAR_ERRORS = 4.0


@dataclass(frozen=True)
class FlippedShares:
    """The largest share t² / (1 + t²) of a family after each flip.

    Flips of the differences are the exact test where no system differs from its baseline. Where
    some differ, these flips hold their differences too and c shrinks; those of the residuals
    (difference − mean) then stand for the errors of the means. The stricter of both counts.

    Attributes:
        differences: Shape (N,): the observed value and one of each draw, or of every flip.
        residuals: Shape (B + 1,): the observed value and one of each draw.
        is_exact: ``differences`` has every flip that there is.
    """

    differences: FloatArray
    residuals: FloatArray
    is_exact: bool

    def reach(self, share: float) -> float:
        """The part of the values that reach one."""
        return max(share_reaching(self.differences, share), share_reaching(self.residuals, share))

    def critical(self, alpha: float) -> float:
        """The value that is reached by α of the values."""
        return max(critical_share(values, alpha) for values in (self.differences, self.residuals))

    def is_clear(self, share: float, alpha: float) -> bool:
        """Whether more draws could hardly move a value across the critical one."""
        reached, sampled = (share_reaching(v, share) for v in (self.differences, self.residuals))
        if not self.is_exact:
            sampled = max(reached, sampled)
        elif reached > alpha:
            return True
        error = math.sqrt(alpha * (1 - alpha) / len(self.residuals))
        return abs(sampled - alpha) >= CLEAR_ERRORS * error


def share_reaching(values: FloatArray, share: float) -> float:
    """The part of the N values that reach one."""
    return int((values >= share - NOISE).sum()) / len(values)


def critical_share(values: FloatArray, alpha: float) -> float:
    """The ⌊α·N⌋-th largest value; 1, an infinite t, where that is none."""
    place = math.floor(alpha * len(values) + NOISE)
    return 1.0 if place < 1 else float(np.partition(values, -place)[-place])


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
            Where groups differ in size, (2 R + 2, G): w_g n_g S_g likewise below.
        scales: A unit of each of these rows; of S_g as a part of N.
        weight: w_g n_g N where all groups are of one size; else None.
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
    weight: float | None
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
        count = self.changed
        means, weighted = self._scale(_flip(self.units[:, :count], flips[:count]))
        return self.to_shares(means[:-1], weighted[:-1], self.squares)

    def compute_both(self, flips: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The same of the differences and of the residuals; ``flips`` has all G groups."""
        means, weighted, *residuals = self._flip_all(flips)
        shares = self.to_shares(means, weighted, self.squares)
        return shares, self.to_shares(residuals[0], residuals[1], self.residual_squares)

    def flip_residuals(self, flips: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Σ S_g / N and Σ w_g n_g S_g of the residuals after each flip, (R, B) each."""
        _, _, means, weighted = self._flip_all(flips)
        return means, weighted

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

    def _flip_all(self, flips: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """(R, B): Σ S_g / N and Σ w_g n_g S_g of the differences, and both of the residuals."""
        count, rows = self.changed, len(self.means)
        ones = slice(rows, None, rows + 1)  # all other rows are 0 in the groups that do not change
        sums = _flip(self.units[:, :count], flips[:count])
        sums[ones] += _flip(self.units[ones, count:], flips[count:])
        means, weighted = self._scale(sums)
        residuals = (each[:-1] - self.means[:, None] * each[-1] for each in (means, weighted))
        return (means[:-1], weighted[:-1], *residuals)

    def _scale(self, sums: FloatArray) -> tuple[FloatArray, FloatArray]:
        """(R + 1, B): Σ S_g / N and Σ w_g n_g S_g of sums in units."""
        scaled = sums * self.scales[:, None]
        if self.weight is not None:
            return scaled, scaled * self.weight
        return scaled[: len(self.means) + 1], scaled[len(self.means) + 1 :]


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
    weight = None
    if sizes.min() == sizes.max():
        weight = float(factors[0] * queries)
    else:
        weighted, shifts = _fixed_point(sums * factors)
        units, scales = np.vstack([units, weighted]), np.append(scales, np.ldexp(1.0, -shifts))
    means = np.array([math.fsum(row.tolist()) / queries for row in sums[:-1]])
    squares = _sum_squares(sums[:-1], weights)
    residual_squares = _sum_squares(sums[:-1] - means[:, None] * sizes, weights)
    residual_squares[residual_squares <= NOISE**2 * squares] = 0.0
    return FlippedStatistics(
        ids=tuple(names[i] for i in order),
        changed=int(is_changed.sum()),
        units=units[:, order],
        scales=scales,
        weight=weight,
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
    return FlippedStatistics((), 0, nothing, scales, 0.0, zeros, zeros, zeros, 0.0, queries)


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


#: Up to so many changed groups every flip is enumerated.
MOST_EXACT_GROUPS = 16
#: Numbers held at once while flips are computed: 4 MB, about what the cache holds.
BLOCK_NUMBERS = 1 << 19


def flip_family(
    parts: Sequence[FlippedStatistics],
    is_clear: Callable[[FlippedShares], bool],
    seed: int,
    limits: tuple[int, int],
) -> FlippedShares:
    """The largest share t² / (1 + t²) of the family, as observed and for each flip.

    Flips of the residuals are always drawn; they share their signs with drawn flips of the
    differences.

    Args:
        parts: The rows of the family by sets of queries.
        is_clear: Whether these values decide everything, so that no more are drawn.
        seed: Seed of the signs.
        limits: Flips to draw at first, and at most.
    """
    keys = [part.keys(seed) for part in parts]
    observed = np.array([max((float(p.observe().max()) for p in parts), default=0.0)])
    exact = _enumerate_shares(parts)
    drawn = np.stack([observed, observed])
    start, stop = 0, limits[0]
    while True:
        more = _largest_shares(
            parts, lambda i, a, b: parts[i].compute_both(draw_flips(keys[i], a, b)), start, stop
        )
        drawn = np.concatenate([drawn, more], axis=1)
        values = FlippedShares(drawn[0] if exact is None else exact, drawn[1], exact is not None)
        if stop >= limits[1] or is_clear(values):
            return values
        start, stop = stop, min(2 * stop, limits[1])


def _enumerate_shares(parts: Sequence[FlippedStatistics]) -> FloatArray | None:
    """Of every flip of the changed groups; None where these are too many."""
    names = sorted({name for part in parts for name in part.ids[: part.changed]})
    if len(names) > MOST_EXACT_GROUPS:
        return None
    groups = {name: i for i, name in enumerate(names)}
    flips = enumerate_flips(len(groups))
    lines = [[groups[name] for name in part.ids[: part.changed]] for part in parts]
    largest = _largest_shares(
        parts, lambda i, a, b: (parts[i].compute(flips[lines[i], a:b]),), 0, flips.shape[1]
    )
    return np.asarray(largest[0])


def _largest_shares(
    parts: Sequence[FlippedStatistics],
    shares_of: Callable[[int, int, int], tuple[FloatArray, ...]],
    start: int,
    stop: int,
) -> FloatArray:
    """(K, stop − start): the largest of each of K shares over all parts; bounded memory.

    ``shares_of`` gives those of a part from one flip to another, each (R, B).
    """
    widest = max((len(part.ids) + 8 * len(part.units) for part in parts), default=1)
    step = max(64, BLOCK_NUMBERS // max(widest, 1) // 64 * 64)
    blocks: list[FloatArray] = []
    for a in range(start, stop, step):
        b = min(a + step, stop)
        largest = [
            [shares.max(axis=0) for shares in shares_of(i, a, b)]
            for i, part in enumerate(parts)
            if part.ids
        ]
        blocks.append(np.array(largest).max(axis=0) if largest else np.zeros((2, b - a)))
    return np.asarray(np.concatenate(blocks, axis=1))
