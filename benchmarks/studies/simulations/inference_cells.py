"""The cells of the trial of ``inference_trial``: designs whose true differences are known."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np

from fusion_bench.data.ordering import FloatArray

#: Errors of docs/studies/statistics.md, and their correlation between systems.
KINDS: Final = {"normal, correlation .1": 0.1, "normal, correlation .5": 0.5, "sparse": 0.5}
#: In the order of their weight for the decision.
SIZES: Final = (60, 200, 26, 1_000, 20, 12)
SYSTEMS: Final = (1, 5, 12, 30)


class Sample(NamedTuple):
    """Independent samples of one design.

    Attributes:
        sums: Shape (runs, R, G): sums of differences by unit.
        sizes: Shape (runs, G): queries of each unit.
        truth: Shape (R,): the true mean differences per query.
        losing: Shape (runs,): the fewest losing units of any row.
    """

    sums: FloatArray
    sizes: FloatArray
    truth: FloatArray

    @property
    def losing(self) -> FloatArray:
        """(runs,): the fewest losing units of any row."""
        return np.asarray((self.sums < 0).sum(axis=2).min(axis=1))


@dataclass(frozen=True)
class Cell:
    """A design.

    Attributes:
        kind: Of its differences.
        systems: R.
        units: G.
        draw: A generator and the number of runs → that many samples.
        is_shifted: Whether the same errors are tried with true differences too: none, and half of
            the rows 1.5 to 4.5 standard errors.
        is_conditional: Whether only samples count in which every row has 10 losing units.
    """

    kind: str
    systems: int
    units: int
    draw: Callable[[np.random.Generator, int], Sample]
    is_shifted: bool = False
    is_conditional: bool = False

    @property
    def name(self) -> str:
        """Unique."""
        return f"{self.kind}, {self.systems} systems, {self.units} units"


def _single(values: FloatArray, truth: FloatArray | float = 0.0) -> Sample:
    runs, rows, units = values.shape
    return Sample(values, np.ones((runs, units)), np.broadcast_to(truth, rows).astype(float))


def _normals(rng: np.random.Generator, runs: int, rows: int, units: int) -> FloatArray:
    """Standard normal, correlation .5 between rows."""
    shared, alone = rng.standard_normal((runs, 1, units)), rng.standard_normal((runs, rows, units))
    return np.asarray((shared + alone) * np.sqrt(0.5))


def draw_errors(rng: np.random.Generator, kind: str, systems: int, queries: int) -> FloatArray:
    """(systems, queries): correlated errors of standard deviation 1."""
    size, correlation = (systems, queries), KINDS[kind]
    if kind != "sparse":
        shared, alone = rng.standard_normal(queries), rng.standard_normal(size)
        return np.asarray(np.sqrt(correlation) * shared + np.sqrt(1 - correlation) * alone)
    is_shared = rng.random(size) < correlation
    values = np.where(is_shared, rng.laplace(size=queries), rng.laplace(size=size))
    return np.asarray(values * (rng.random(size) < 0.4) / np.sqrt(0.8))


def draw_page(kind: str, rows: int, units: int) -> Callable[[np.random.Generator, int], Sample]:
    """The errors of docs/studies/statistics.md."""

    def draw(rng: np.random.Generator, runs: int) -> Sample:
        return _single(np.array([draw_errors(rng, kind, rows, units) for _ in range(runs)]))

    return draw


def draw_exponential(rows: int, units: int) -> Callable[[np.random.Generator, int], Sample]:
    """1 − an exponential variable, of correlation .5 before it is bent."""

    def draw(rng: np.random.Generator, runs: int) -> Sample:
        z = _normals(rng, runs, rows, units)
        return _single(1 + np.log1p(-_uniform(z)))

    return draw


def draw_t3(rows: int, units: int) -> Callable[[np.random.Generator, int], Sample]:
    """Student's t with 3 degrees of freedom; a query is as far out in all systems."""

    def draw(rng: np.random.Generator, runs: int) -> Sample:
        scale = np.sqrt(rng.chisquare(3, (runs, 1, units)))
        return _single(_normals(rng, runs, rows, units) / scale)

    return draw


def _uniform(z: FloatArray) -> FloatArray:
    from fusion_bench.util.special_functions import special

    return np.asarray(np.clip(special.ndtr(z), 1e-12, 1 - 1e-12))


def draw_gains(share: float, rows: int, units: int) -> Callable[[np.random.Generator, int], Sample]:
    """Gains on a share of the queries, of mean .2 and at most 1, the others unchanged."""
    mean = 0.2 * (1 - np.exp(-5))

    def draw(rng: np.random.Generator, runs: int) -> Sample:
        z = _uniform(_normals(rng, runs, rows, units))
        gains = np.minimum(rng.exponential(0.2, z.shape), 1)
        return _single(np.where(z < share, gains, 0.0), share * mean)

    return draw


def draw_rare(
    share: float, loss: float, noise: float, rows: int, units: int
) -> Callable[[np.random.Generator, int], Sample]:
    """A loss on a share of the queries, the rest gains as much in the mean."""

    def draw(rng: np.random.Generator, runs: int) -> Sample:
        z = _uniform(_normals(rng, runs, rows, units))
        values = np.where(z < share, -loss, loss * share / (1 - share))
        return _single(values + noise * rng.standard_normal(z.shape) * (noise > 0))

    return draw


def _stepped(
    rng: np.random.Generator,
    levels: FloatArray,
    odds: FloatArray,
    rows: int,
    units: int,
    runs: int,
    *,
    gains: bool,
) -> Sample:
    """A value per query from some levels; each system draws anew on 30 % of the queries.

    With ``gains`` the new value is the better of two.
    """
    base = rng.choice(levels, (runs, 1, units), p=odds)
    size = (runs, rows, units)
    new = rng.choice(levels, size, p=odds)
    truth = 0.0
    if gains:
        new = np.maximum(new, rng.choice(levels, size, p=odds))
        best = np.maximum(levels[:, None], levels)
        truth = 0.3 * float((odds[:, None] * odds * best).sum() - (odds * levels).sum())
    return _single(np.where(rng.random(size) < 0.3, new - base, 0.0), truth)


RECIPROCALS: Final = np.array([0.0, *(1 / np.arange(10, 0, -1))])
RR_ODDS: Final = np.array([0.22, *(0.02,) * 5, 0.04, 0.06, 0.1, 0.16, 0.32])
FIFTHS: Final = np.arange(6) / 5
FIFTH_ODDS: Final = np.array([0.3, 0.25, 0.18, 0.12, 0.09, 0.06])


def draw_stepped(
    levels: FloatArray, odds: FloatArray, rows: int, units: int, *, gains: bool
) -> Callable[[np.random.Generator, int], Sample]:
    """RR-like or P@5-like values."""
    return lambda rng, runs: _stepped(rng, levels, odds, rows, units, runs, gains=gains)


GROUP_SIZES: Final = np.array([1.0, 2.0, 5.0, 20.0])
GROUP_ODDS: Final = np.array([0.5, 0.2, 0.2, 0.1])


def draw_groups(
    rows: int, units: int, *, large_lose: bool
) -> Callable[[np.random.Generator, int], Sample]:
    """Groups of 1 to 20 queries; half of the variance between groups."""
    sizes_mean = GROUP_ODDS @ GROUP_SIZES
    gain = 0.3 * GROUP_ODDS[3] * 20 / (sizes_mean - GROUP_ODDS[3] * 20)

    def draw(rng: np.random.Generator, runs: int) -> Sample:
        sizes = rng.choice(GROUP_SIZES, (runs, units), p=GROUP_ODDS)
        n = sizes[:, None]
        sums = n * _normals(rng, runs, rows, units) * np.sqrt(0.5)
        sums += np.sqrt(n / 2) * _normals(rng, runs, rows, units)
        if large_lose:
            sums += n * np.where(n == 20, -0.3, gain)
        return Sample(sums, sizes, np.zeros(rows))

    return draw


def draw_half_few(rows: int, units: int) -> Callable[[np.random.Generator, int], Sample]:
    """Half of the rows change on 9 units, by Laplace values; the others are normal."""

    def draw(rng: np.random.Generator, runs: int) -> Sample:
        values = _normals(rng, runs, rows, units)
        few = rows // 2
        order = rng.random((runs, few, units)).argsort(axis=2)
        values[:, :few] = np.where(order < 9, rng.laplace(size=order.shape), 0.0)
        return _single(values)

    return draw


def draw_world(
    values: FloatArray, codes: np.ndarray, units: int, *, flipped: bool
) -> Callable[[np.random.Generator, int], Sample]:
    """Units of a collection, drawn with replacement; ``flipped``: with random signs."""
    count = int(codes.max()) + 1
    sums = np.array([np.bincount(codes, row, count) for row in values])
    sizes = np.bincount(codes).astype(float)
    truth = np.zeros(len(values)) if flipped else sums.sum(axis=1) / sizes.sum()

    def draw(rng: np.random.Generator, runs: int) -> Sample:
        chosen = rng.integers(0, count, (runs, units))
        drawn = np.ascontiguousarray(sums[:, chosen].transpose(1, 0, 2))
        if flipped:
            drawn = drawn * rng.choice([-1.0, 1.0], (runs, 1, units))
        return Sample(drawn, sizes[chosen], truth)

    return draw


def list_cells() -> Iterator[Cell]:
    """All designs but those of real collections, repeats and best groups."""
    for units in SIZES:
        for rows in SYSTEMS:
            yield from _list_errors(rows, units)
            yield from _list_changes(rows, units)
    for units in (15, 50, 200):
        for rows in (5, 30):
            for kind in KINDS:
                yield Cell(kind, rows, units, draw_page(kind, rows, units), is_shifted=True)


def _list_errors(rows: int, units: int) -> Iterator[Cell]:
    """Designs in which every unit differs."""
    yield Cell("exponential", rows, units, draw_exponential(rows, units), is_shifted=True)
    yield Cell("t3", rows, units, draw_t3(rows, units), is_shifted=True)
    for lose in (False, True):
        kind = f"unequal groups{', the largest lose' if lose else ''}"
        draw = draw_groups(rows, units, large_lose=lose)
        yield Cell(kind, rows, units, draw, is_shifted=not lose)
    for share, loss, noise in ((0.1, 0.45, 0.0), (0.1, 0.45, 0.01), (0.025, 0.6, 0.01)):
        if units * share >= 20:
            kind = f"losses of {loss} on {share:.1%}{', noise' if noise else ''}"
            draw = draw_rare(share, loss, noise, rows, units)
            yield Cell(kind, rows, units, draw, is_conditional=True)


def _list_changes(rows: int, units: int) -> Iterator[Cell]:
    """Designs in which some units differ."""
    for share in (0.1, 0.2, 0.5):
        yield Cell(f"gains on {share:.0%}", rows, units, draw_gains(share, rows, units))
    for name, levels, odds in (("RR", RECIPROCALS, RR_ODDS), ("P@5", FIFTHS, FIFTH_ODDS)):
        for gains in (False, True):
            kind = f"{name}-like{', gains' if gains else ''}"
            draw = draw_stepped(levels, odds, rows, units, gains=gains)
            yield Cell(kind, rows, units, draw)
    if rows > 1:
        yield Cell("half few", rows, units, draw_half_few(rows, units))
