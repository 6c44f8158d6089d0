"""One inference for all commands: intervals and p of a family, from units that are drawn anew.

A unit is a group of queries, or a query where there are no groups. As many units as there are, are
drawn with replacement, B times. How far t strays from its center in these draws, over all rows of a
family at once, gives the intervals of all rows. t is studentized, because a mean and its error move
together where a change gains on some queries only (the bootstrap-t: Efron & Tibshirani 1993, "An
Introduction to the Bootstrap", section 12.5; its greatest value over a family: Romano & Wolf 2005,
"Exact and approximate stepdown methods for multiple hypothesis testing", JASA 100).

Where few units differ, t* of a row has long tails, which would widen the intervals of all others.
So t* of such a row is measured in its own 1 − α/2 quantile, before the greatest of a draw is taken.

With D_g the sum of the n_g differences of unit g, N queries and G units, the mean is m = Σ D_g / N,
and the square of its error is s² = G/(G − 1) · Σ (D_g − m·n_g)² / N². A draw that holds unit g c_g
times has the same sums with the weights c_g, and t* = (m* − m) / s*.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from fusion_bench.data.grouped_rows import number_by_appearance
from fusion_bench.data.ordering import NOISE, FloatArray, IntArray, make_readonly
from fusion_bench.data.query_groups import MIN_GROUPS
from fusion_bench.stats.intervals import (
    POWER_QUANTILE,
    bet_on_mean,
    draw_groups,
    exact_mean,
    t_quantile,
)
from fusion_bench.stats.power import MIN_CHANGED_FOR_SPREAD, upper_tail
from fusion_bench.stats.repeat_variance import RepeatMeans, repeat_variance, repeat_width
from fusion_bench.stats.values import MeasuredValues, Pair
from fusion_bench.util.formatting import check_wanted

#: Draws at least, and draws · α at least.
DRAWS, DRAWS_AT_LEVEL = 10_000, 40
#: Draws decide a row with so many units, and with so many of them off its commonest difference.
MIN_UNITS, MIN_CHANGED = MIN_GROUPS, 10
#: The error of a draw is 0 up to this share of the row's error.
ROUNDING: Final = 1e-6
#: A row has a tail of its own where its quantile is so many times the median of the family.
LONG_TAIL: Final = 1.2
#: Units × draws, and rows × draws, in one block.
BLOCK: Final = 1 << 20
#: Halvings of the interval that holds a p.
HALVINGS: Final = 60


@dataclass(frozen=True, eq=False)
class Units:
    """What is drawn: groups, or queries, in the order of their ids' digests.

    Attributes:
        digest: Of all ids.
        codes: Shape (Q,): the unit of each query.
        sizes: Shape (G,): the queries of each unit.
    """

    digest: bytes
    codes: IntArray
    sizes: FloatArray

    @classmethod
    def from_keys(cls, keys: Sequence[str]) -> Units:
        """The units of queries with these group ids, or with their own ids where none are."""
        codes, names = number_by_appearance(keys)
        digests = [_digest(name.encode("utf-8", "surrogatepass")) for name in names]
        order = sorted(range(len(digests)), key=digests.__getitem__)
        places = np.empty(len(order), dtype=np.int64)
        places[order] = np.arange(len(order))
        sizes = np.bincount(places[codes], minlength=len(order)).astype(np.float64)
        return cls(_digest(b"".join(sorted(digests))), places[codes], sizes)


def _digest(text: bytes) -> bytes:
    return hashlib.blake2b(text, digest_size=16).digest()


def count_draws(alpha: float) -> int:
    """B: the draws that decide at a level."""
    return max(DRAWS, math.ceil(DRAWS_AT_LEVEL / alpha))


@lru_cache(maxsize=2)
def draw_counts(digest: bytes, count: int, seed: int, draws: int) -> NDArray[np.uint8]:
    """How often each unit is in each draw, shape (draws, count).

    The same units are drawn alike for every family and measure; other units independently.

    Args:
        digest: Of the units' ids.
        count: G.
        seed: Of the experiment.
        draws: B.
    """
    own = int.from_bytes(_digest(f"{seed}\0".encode() + digest), "little")
    counts, start = np.empty((draws, count), dtype=np.uint8), 0
    for block in draw_groups(count, draws, own):
        check_wanted()
        block += np.arange(0, block.size, count)[:, None]
        found = np.bincount(block.ravel(), minlength=block.size)
        counts[start : start + len(block)] = found.reshape(block.shape)
        start += len(block)
    make_readonly(counts)
    return counts


def mean_error(residuals: FloatArray, queries: float) -> float:
    """s: the standard error of a mean difference per query; NaN with one unit.

    Args:
        residuals: Shape (G,): D_g − m·n_g.
        queries: N.
    """
    count = len(residuals)
    if count < 2:
        return math.nan
    return math.sqrt(float(residuals @ residuals) * count / (count - 1)) / queries


class _Prepared:
    """A row before the draws: its mean and error, and what the draws need."""

    def __init__(
        self, sums: FloatArray, units: Units, mean: float, pair: Pair | None = None
    ) -> None:
        self.units, self.sums, self.mean = units, sums + 0.0, mean  # + 0.0: −0 equals 0
        self.residuals = sums - mean * units.sizes
        self.repeats: RepeatMeans = () if pair is None else pair.repeats
        self.limit = 1.0 if pair is not None and pair.is_bounded else math.inf
        self.error = mean_error(self.residuals, units.sizes.sum())

    @classmethod
    def from_pair(cls, pair: Pair, units: Units) -> _Prepared:
        """The sums of a pair's differences by unit."""
        return cls(*_add_up(pair.difference, units), pair)

    @cached_property
    def changed(self) -> int:
        """Units with a difference."""
        return int((np.abs(self.sums) > NOISE).sum())

    @cached_property
    def off(self) -> int:
        """Units off the commonest difference; right below 10, and where it is that of most units.

        The median is the commonest difference where more than half of the units have it.
        """
        values = self.sums / self.units.sizes
        return int((np.abs(values - np.median(values)) > NOISE).sum())

    @cached_property
    def is_drawn(self) -> bool:
        """Whether enough units differ for draws."""
        return len(self.sums) >= MIN_UNITS and min(self.changed, self.off) >= MIN_CHANGED

    @property
    def has_interval(self) -> bool:
        """Whether enough units differ for an interval that covers."""
        return self.is_drawn and (
            self.off >= MIN_CHANGED_FOR_SPREAD or 2 * self.off >= len(self.sums)
        )

    @property
    def result(self) -> RowInference:
        """What is known without any draw."""
        return RowInference(
            *(self.mean, self.error, len(self.sums), self.changed, self.repeats, self.limit)
        )

    @property
    def content(self) -> tuple[bytes, ...]:
        """What makes two rows of a family one."""
        return (self.units.digest, self.sums.tobytes(), *(each.tobytes() for each in self.repeats))


def _add_up(values: FloatArray, units: Units) -> tuple[FloatArray, Units, float]:
    """Sums by unit, the units, and the mean."""
    sums = np.bincount(units.codes, values, len(units.sizes)).astype(np.float64)
    return sums, units, exact_mean(values)


def exact_p(sums: FloatArray, sizes: FloatArray) -> float:
    """Two-sided p of a row that draws do not decide.

    Where fewer than 10 units differ, it is the share of their sign flips whose |Σ| is at least the
    observed one. Flips are no test of skewed differences: where more differ, nearly all by the same
    amount, it is 2 ÷ the capital of bets that the mean is 0, which holds whatever was not seen.

    Args:
        sums: Shape (G,): sums of differences by unit.
        sizes: Shape (G,): their queries.
    """
    changed = sums[np.abs(sums) > NOISE]
    if len(changed) >= MIN_CHANGED:
        return min(1.0, 2 * bet_on_mean(sums * np.sign(sums.sum()), sizes))
    flipped = np.zeros(1)
    for value in changed.tolist():
        flipped = np.concatenate((flipped + value, flipped - value))
    return float((np.abs(flipped) >= abs(changed.sum()) - NOISE * len(sums)).mean())


def flip_p(sums: FloatArray, seed: int) -> float:
    """Two-sided p of random sign flips of the units that differ; 0 where 60 or more do.

    Args:
        sums: Shape (G,): sums of differences by unit.
        seed: Of the experiment.
    """
    changed = sums[np.abs(sums) > NOISE]
    if len(changed) >= 2 * MIN_CHANGED_FOR_SPREAD:
        return 0.0
    signs = np.random.default_rng(seed).choice([-1.0, 1.0], (DRAWS, len(changed)))
    reached = np.abs(signs @ changed) >= abs(changed.sum()) - NOISE * len(sums)
    return float((1 + reached.sum()) / (DRAWS + 1))


def studentize(shifts: FloatArray, errors: FloatArray, error: FloatArray | float) -> FloatArray:
    """t* = shift ÷ error of each draw; ±∞ or 0, by the sign of the shift, where its error is 0.

    Args:
        shifts: m* − m, shape (B,), or (R, B) of rows.
        errors: s*, likewise.
        error: s of the row; shape (R, 1) of rows.
    """
    is_zero = errors <= ROUNDING * error
    if not is_zero.any():
        return np.asarray(shifts / errors)
    signs = np.where(np.abs(shifts) <= ROUNDING * error, 0.0, np.sign(shifts))
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(is_zero, np.where(signs == 0, 0.0, signs * math.inf), shifts / errors)


def _resample(
    units: Units,
    residuals: FloatArray,
    pairs: tuple[IntArray, IntArray] | None,
    *,
    seed: int,
    draws: int,
) -> Iterator[tuple[FloatArray, FloatArray]]:
    """Blocks of m* − m and s*, each (R, b), of rows or of all pairs of rows.

    Args:
        units: What is drawn.
        residuals: Shape (R, G): D_g − m·n_g.
        pairs: The first and the second of each pair, whose difference is meant; None = rows.
        seed: Of the experiment.
        draws: B.
    """
    counts = draw_counts(units.digest, len(units.sizes), seed, draws)
    sizes, is_equal = units.sizes, units.sizes.min() == units.sizes.max()

    def subtract(values: FloatArray) -> FloatArray:
        return values if pairs is None else values[pairs[0]] - values[pairs[1]]

    # Pairs are many, and only ask whether t exceeds a value: single precision halves the time.
    precision: type[np.floating[Any]] = np.float64 if pairs is None else np.float32
    squares: NDArray[Any] = (subtract(residuals) ** 2).astype(precision)
    factor, step = len(sizes) / (len(sizes) - 1), max(1, BLOCK // max(squares.shape))
    for start in range(0, draws, step):
        check_wanted()
        block = counts[start : start + step].T.astype(np.float64)
        totals = sizes @ block
        shifts = subtract((residuals @ block) / totals)
        products: NDArray[Any] = squares @ block.astype(precision, copy=False)
        spread: FloatArray = products.astype(np.float64, copy=False)
        if is_equal:
            spread -= shifts**2 * (sizes[0] * totals)
        else:
            weighted = subtract((residuals * sizes) @ block)
            spread += shifts * (shifts * (sizes**2 @ block) - 2 * weighted)
        np.maximum(spread, 0.0, out=spread)
        yield shifts, np.sqrt(spread * factor) / totals


def find_scales(t: NDArray[Any], alpha: float, freedom: FloatArray, sides: int = 1) -> FloatArray:
    """(R,): of each row the quantile of t* that it is measured in, never below Student's.

    A row whose own quantile is far above the family's median has a scale of its own; the others
    share the median, as the noise of single quantiles would make intervals too narrow.

    Args:
        t: Shape (R, B): t*, turned so that far is great.
        alpha: Level of the family: the quantile is the ⌊(B + 1)·α/2⌋-th largest.
        freedom: Shape (R,): units − 1.
        sides: Tails that each t* is of; with 2, the rank is ⌊(B + 1)·α⌋.
    """
    draws = t.shape[1]
    rank = math.floor((draws + 1) * alpha * sides / 2 * (1 + NOISE))
    own = np.partition(t, draws - rank, axis=1)[:, draws - rank].astype(np.float64)
    student = [t_quantile(each, 1 - alpha / 2) for each in freedom.tolist()]
    shared = np.median(own) if len(own) else 0.0
    return np.maximum(np.maximum(own / LONG_TAIL, shared), student)


def greatest_scaled(t: NDArray[Any], scales: FloatArray) -> FloatArray:
    """(B,): the greatest of all rows' t* ÷ scale in each draw; a scale of ∞ is never reached."""
    with np.errstate(invalid="ignore"):
        scaled = t / scales[:, None]
    scaled[np.isinf(scales)] = 0.0
    return np.asarray(scaled.max(axis=0, initial=0.0))


class Tail:
    """How far the rows of a family stray to one side, or to both, in units of their scales.

    Attributes:
        values: Shape (B,), ascending: the greatest of each draw.
    """

    def __init__(self, values: FloatArray) -> None:
        self.values = np.sort(values)

    def critical(self, level: float, scale: float) -> float:
        """The ⌊(B + 1) · level⌋-th largest value, at least 1, times the scale of a row."""
        rank = math.floor((len(self.values) + 1) * level * (1 + NOISE))
        return max(float(self.values[-rank]), 1.0) * scale if rank else math.inf

    def level(self, t: float, scale: float) -> float:
        """The least level at which ``t`` ≥ 0 of a row reaches the draws' critical value."""
        reached = len(self.values) - int(np.searchsorted(self.values, t / scale))
        return (1 + reached) / (len(self.values) + 1)


@dataclass(frozen=True, eq=False)
class RowInference:
    """What the draws of a family say about one of its rows.

    Attributes:
        mean: m.
        error: s; NaN with one unit.
        units: G.
        changed: Units with a difference.
        repeats: As given.
        limit: The greatest difference that the measure can have, where intervals end.
        low: Lower end of the interval, which holds together with those of the family; NaN = none.
        high: Upper end.
        p: Two-sided, over the family. Where draws give no interval, sign flips must agree.
        critical: c⁺ and −c⁻, the errors to the lower and to the upper end; NaN = no draws.
        repeat_width: What repeats add to each, see :func:`repeat_width`.
        shifts: Shape (B,): m* − m of each draw; empty where too few units differ.
        errors: Shape (B,): s* of each draw.
    """

    mean: float
    error: float
    units: int
    changed: int
    repeats: RepeatMeans = ()
    limit: float = math.inf
    low: float = math.nan
    high: float = math.nan
    p: float = 1.0
    critical: tuple[float, float] = (math.nan, math.nan)
    repeat_width: float = math.nan
    shifts: FloatArray = field(default_factory=lambda: np.empty(0))
    errors: FloatArray = field(default_factory=lambda: np.empty(0))

    @property
    def has_interval(self) -> bool:
        """Whether enough units differ; without any difference it is 0 wide."""
        return not math.isnan(self.low)

    @property
    def is_drawn(self) -> bool:
        """Whether draws decide the row."""
        return len(self.shifts) > 0

    @property
    def loss_share(self) -> float:
        """The share of draws in which the candidate is worse; NaN without draws."""
        return float((self.mean + self.shifts < -NOISE).mean()) if self.is_drawn else math.nan

    @property
    def detectable(self) -> float:
        """The true difference that is found with a power of about .8."""
        spread = math.hypot(self.error, math.sqrt(repeat_variance(self.repeats)))
        return (
            math.hypot(self.critical[0] * self.error, self.repeat_width) + POWER_QUANTILE * spread
        )

    def one_sided(self, alpha: float) -> tuple[float, float]:
        """Critical value c of the row's one-sided 1 − ``alpha`` lower bound, and what repeats add.

        Without draws c is Student's.
        """
        if self.is_drawn:
            t = studentize(self.shifts, self.errors, self.error)
            critical = float(find_scales(t[None], 2 * alpha, np.array([self.units - 1]))[0])
        else:
            critical = t_quantile(self.units - 1, 1 - alpha) if self.units > 1 else math.inf
        return critical, repeat_width(self.repeats, alpha)

    def lower_bound(self, alpha: float) -> float:
        """The row's own one-sided 1 − ``alpha`` lower bound."""
        critical, width = self.one_sided(alpha)
        return max(self.mean - math.hypot(critical * self.error, width), -self.limit)

    def share_above(self, bound: float, true: float, alpha: float) -> float:
        """The share of draws around a true difference whose lower bound is above ``bound``."""
        critical, width = self.one_sided(alpha)
        widths = np.hypot(critical * self.errors, width)
        return float((true + self.shifts - widths > bound).mean())

    def share_shown_below(self, bound: float, true: float) -> float:
        """The share of draws around a true difference that are below ``bound``, shown below 0."""
        ends = true + self.shifts + np.hypot(self.critical[1] * self.errors, self.repeat_width)
        return float(((true + self.shifts < bound) & (ends < 0)).mean())


def infer_family(
    pairs: Sequence[Pair], *, seed: int = 0, alpha: float = 0.05
) -> tuple[RowInference, ...]:
    """Intervals that hold together, and p, of a family of paired differences.

    Rows with identical values count once, rows without any difference not at all. Rows that draws
    do not decide, as fewer than 10 units differ, take their share of α with them; their p is that
    of :func:`exact_p`. Where fewer than 30 and fewer than half do, draws give no interval.

    Args:
        pairs: The family, of one or several collections.
        seed: Of the experiment.
        alpha: 1 − coverage of all intervals together.
    """
    units = {keys: Units.from_keys(keys) for keys in dict.fromkeys(pair.keys for pair in pairs)}
    prepared = [_Prepared.from_pair(pair, units[pair.keys]) for pair in pairs]
    distinct = {row.content: row for row in prepared if row.changed}
    usable = [row for row in distinct.values() if row.is_drawn]
    draws = count_draws(alpha)
    drawn = _draw_rows(usable, seed=seed, draws=draws)
    family = _Family.from_rows(
        usable, drawn, draws=draws, size=len(distinct), seed=seed, alpha=alpha
    )
    return tuple(
        family.decide(row, *drawn[row.content]) if row.is_drawn else _decide_few(row, len(distinct))
        for row in prepared
    )


def _decide_few(row: _Prepared, size: int) -> RowInference:
    """A row without an interval, or without any difference, in a family of so many rows."""
    if not row.changed:
        return replace(row.result, low=0.0, high=0.0)
    p = 1.0 if row.repeats else exact_p(row.sums, row.units.sizes)
    return replace(row.result, p=min(1.0, p * size))


def _draw_rows(
    rows: Sequence[_Prepared], *, seed: int, draws: int
) -> dict[tuple[bytes, ...], tuple[FloatArray, FloatArray]]:
    """m* − m and s* of each row, (B,), by its content."""
    drawn = {}
    for digest in dict.fromkeys(row.units.digest for row in rows):
        same = [row for row in rows if row.units.digest == digest]
        residuals = np.array([row.residuals for row in same])
        blocks = zip(
            *_resample(same[0].units, residuals, None, seed=seed, draws=draws), strict=True
        )
        shifts, errors = (np.concatenate(block, axis=1) for block in blocks)
        for row, *found in zip(same, shifts, errors, strict=True):
            drawn[row.content] = found[0], found[1]
    return drawn


@dataclass(frozen=True, eq=False)
class _Family:
    """Rows that are compared at once.

    Attributes:
        lower: How far t* is above 0, which decides lower ends.
        upper: How far it is below.
        scales: By content of a row its scale in both.
        size: All rows of the whole family.
        share: These rows ÷ all.
        repeated: R: those with repeats.
        seed: Of the experiment.
        alpha: Level of the whole family.
    """

    lower: Tail
    upper: Tail
    scales: Mapping[tuple[bytes, ...], tuple[float, float]]
    size: int
    share: float
    repeated: int
    seed: int
    alpha: float

    @classmethod
    def from_rows(
        cls,
        rows: Sequence[_Prepared],
        drawn: Mapping[tuple[bytes, ...], tuple[FloatArray, FloatArray]],
        *,
        draws: int,
        size: int,
        seed: int,
        alpha: float,
    ) -> _Family:
        """The family of some distinct rows, which draws decide, of ``size`` in all."""
        t = np.array([studentize(*drawn[row.content], row.error) for row in rows])
        t = t.reshape(len(rows), draws)
        freedom = np.array([len(row.sums) - 1 for row in rows])
        lower, upper = (find_scales(turned, alpha, freedom) for turned in (t, -t))
        pairs = zip(lower.tolist(), upper.tolist(), strict=True)
        return cls(
            lower=Tail(greatest_scaled(t, lower)),
            upper=Tail(greatest_scaled(-t, upper)),
            scales=dict(zip((row.content for row in rows), pairs, strict=True)),
            size=size,
            share=len(rows) / max(size, 1),
            repeated=sum(repeat_variance(row.repeats) > 0 for row in rows),
            seed=seed,
            alpha=alpha,
        )

    def decide(self, row: _Prepared, shifts: FloatArray, errors: FloatArray) -> RowInference:
        """Interval and p of one of the rows.

        Args:
            row: The row.
            shifts: m* − m of its draws.
            errors: s* likewise.
        """
        level, scales = self.alpha * self.share / 2, self.scales[row.content]
        flips = 0.0 if row.has_interval else flip_p(row.sums, self.seed) * self.size
        width = repeat_width(row.repeats, level, self.repeated)
        critical = self.lower.critical(level, scales[0]), self.upper.critical(level, scales[1])
        tail, scale = (self.lower, scales[0]) if row.mean > 0 else (self.upper, scales[1])
        t, freedom = abs(row.mean) / row.error, len(row.sums) - 1
        level_at_zero = self.find_level(row, tail, scale)
        low = row.mean - math.hypot(critical[0] * row.error, width)
        high = row.mean + math.hypot(critical[1] * row.error, width)
        return replace(
            row.result,
            low=max(low, -row.limit) if row.has_interval else math.nan,
            high=min(high, row.limit) if row.has_interval else math.nan,
            p=min(1.0, max(2 * level_at_zero / self.share, 2 * upper_tail(t, freedom), flips)),
            critical=critical,
            repeat_width=width,
            shifts=shifts,
            errors=errors,
        )

    def find_level(self, row: _Prepared, tail: Tail, scale: float) -> float:
        """The least level of one tail at which the interval does not reach 0; at most .5."""
        mean = abs(row.mean)
        least, greatest = tail.level(mean / row.error, scale), 0.5
        if not repeat_variance(row.repeats):
            return min(least, greatest)
        for _ in range(HALVINGS):
            level = (least + greatest) / 2
            width = repeat_width(row.repeats, level, self.repeated)
            is_shown = math.hypot(tail.critical(level, scale) * row.error, width) < mean
            least, greatest = (least, level) if is_shown else (level, greatest)
        return greatest


def find_rivals(
    systems: Mapping[str, MeasuredValues],
    keys: tuple[str, ...],
    *,
    seed: int = 0,
    alpha: float = 0.05,
) -> dict[str, frozenset[str]]:
    """By system those that are better than it, in the family of all pairs.

    Systems without any are the best group. A pair and its mirror image are one statement, so that
    the greatest |t*| of all pairs decides both (multiple comparisons with the best: Hsu 1984,
    "Constrained simultaneous confidence intervals for multiple comparisons with the best", Annals
    of Statistics 12, in the conservative form).

    Args:
        systems: By name; finite values of the same queries in the same order.
        keys: The group id of each query.
        seed: Of the experiment.
        alpha: 1 − the probability that the best system is in the best group.
    """
    units = Units.from_keys(keys)
    alone = {name: _Prepared(*_add_up(each.values, units)) for name, each in systems.items()}
    twins: dict[tuple[bytes, ...], list[str]] = {}
    for name, system in alone.items():
        twins.setdefault(system.content, []).append(name)
    same = list(twins.values())
    distinct = [alone[names[0]] for names in same]
    first = [systems[names[0]] for names in same]
    pairs = {
        (i, j): _Prepared(a.sums - b.sums, units, a.mean - b.mean, Pair(first[i], first[j], keys))
        for i, a in enumerate(distinct)
        for j, b in enumerate(distinct[:i])
    }
    better = _find_better(distinct, pairs, seed=seed, alpha=alpha)
    return {
        name: frozenset(rival for j in better[i] for rival in same[j])
        for i, names in enumerate(same)
        for name in names
    }


def _find_better(
    systems: Sequence[_Prepared],
    pairs: Mapping[tuple[int, int], _Prepared],
    *,
    seed: int,
    alpha: float,
) -> list[set[int]]:
    """For each of some distinct systems, the places of those that are shown to be better."""
    better: list[set[int]] = [set() for _ in systems]
    places = [pair for pair, row in pairs.items() if row.is_drawn]
    draws = count_draws(alpha)
    scales: dict[tuple[int, int], float] = {}
    greatest = np.zeros(draws)
    if places:
        residuals = np.array([row.residuals for row in systems])
        first, second = np.array(places).T
        errors = np.array([pairs[pair].error for pair in places])[:, None]
        blocks = _resample(systems[0].units, residuals, (first, second), seed=seed, draws=draws)
        parts = [np.abs(studentize(*block, errors)).astype(np.float32) for block in blocks]
        t = np.concatenate(parts, axis=1)
        own = find_scales(t, alpha, np.full(len(places), len(systems[0].sums) - 1), sides=2)
        scales = dict(zip(places, own.tolist(), strict=True))
        greatest = greatest_scaled(t, own)
    tail, level = Tail(greatest), alpha * len(places) / max(len(pairs), 1)
    repeated = sum(repeat_variance(pairs[pair].repeats) > 0 for pair in places)
    for (i, j), row in pairs.items():
        if row.is_drawn:
            width = repeat_width(row.repeats, level / 2, repeated)
            critical = tail.critical(level, scales[i, j])
            is_shown = abs(row.mean) > math.hypot(critical * row.error, width)
        else:
            is_shown = not row.repeats and exact_p(row.sums, row.units.sizes) * len(pairs) <= alpha
        if is_shown:
            better[i if row.mean < 0 else j].add(j if row.mean < 0 else i)
    return better
