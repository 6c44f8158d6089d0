"""The trial of ``inference_trial`` for systems with repeats, and for the best group.

Repeats: normal differences of standard deviation .21 over queries, .15 from repeat to repeat on one
query, and an effect of a repeat on all queries of 0, .02 or .05; 1, 5 or 12 systems of 2, 3 or 6
repeats against a fixed list, or against a baseline with as many.

Best group: normal values, systems that gain on a tenth of the queries, and real
collections.
"""

from __future__ import annotations

import time
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product
from typing import Final

import numpy as np

from benchmarks.studies.choice_rules.grid import DEFAULT, SETTINGS
from benchmarks.studies.simulations.inference_cells import Sample, draw_gains, draw_world
from benchmarks.studies.simulations.inference_trial import (
    ALPHA,
    BATCH,
    Decisions,
    Moments,
    Outcome,
    count,
    draw_t,
    find_critical,
    find_scaled,
)
from benchmarks.studies.simulations.inference_worlds import FAR, MEASURES, NAMES, NEAR, load_world
from fusion_bench.data.ordering import FloatArray
from fusion_bench.util.special_functions import special

QUERY_SD, RESIDUAL_SD = 0.15 * 2**0.5, 0.15
#: Standard deviations of a system's values, and of a difference of two; kinds of true means.
SD, SPREAD = 0.3, 0.2
KINDS: Final = ("equal", "ladder", "apart")


@dataclass(frozen=True)
class RepeatCell:
    """A design of repeats."""

    systems: int
    repeats: int
    units: int
    effect: float
    is_fixed: bool

    @property
    def name(self) -> str:
        """Unique."""
        return (
            f"{self.repeats} repeats of sd {self.effect:g} against "
            f"{'a list' if self.is_fixed else 'as many'}, {self.systems} systems, "
            f"{self.units} units"
        )


def list_repeats() -> Iterator[RepeatCell]:
    """All designs of repeats."""
    for units, rows, repeats, effect, fixed in product(
        (60, 1_000), (1, 5, 12), (2, 3, 6), (0.0, 0.02, 0.05), (True, False)
    ):
        yield RepeatCell(rows, repeats, units, effect, fixed)


@dataclass(frozen=True, eq=False)
class Spread:
    """Of each side of a row: B and W, (runs, R)."""

    between: FloatArray
    within: FloatArray


def draw_repeats(
    cell: RepeatCell, rng: np.random.Generator, runs: int
) -> tuple[FloatArray, list[Spread]]:
    """Differences of means over repeats, (runs, R, G), and the spread of each side."""
    rows, repeats, units = cell.systems, cell.repeats, cell.units
    sides = []
    spreads = []
    for count_ in (rows, *(() if cell.is_fixed else (1,))):
        values = cell.effect * rng.standard_normal((runs, count_, repeats, 1))
        values = values + RESIDUAL_SD * rng.standard_normal((runs, count_, repeats, units))
        means = values.mean(axis=3)
        residuals = values - values.mean(axis=2, keepdims=True)
        residuals -= residuals.mean(axis=3, keepdims=True)
        within = (residuals**2).sum(axis=(2, 3)) / (units * (units - 1) * (repeats - 1))
        shape = (runs, rows)
        between = np.broadcast_to(means.var(axis=2, ddof=1), shape)
        spreads.append(Spread(between, np.broadcast_to(within, shape)))
        sides.append(values.mean(axis=2))
    difference = QUERY_SD * rng.standard_normal((runs, rows, units)) + sides[0]
    return difference - (0 if cell.is_fixed else sides[1]), spreads


def decide_new(
    cell: RepeatCell, moments: Moments, ends: list[FloatArray], spreads: list[Spread]
) -> Decisions:
    """One formula: √((c·s)² + (t(1 − α/2R; ν)·√(Σ B/T))²)."""
    freedom = (cell.repeats - 1) * len(spreads)
    t = special.stdtrit(freedom, 1 - ALPHA / 2 / cell.systems)
    added = t**2 * sum(each.between for each in spreads) / cell.repeats
    widths = [np.sqrt((end * moments.error) ** 2 + added) for end in ends]
    low, high = moments.mean - widths[0], moments.mean + widths[1]
    return Decisions(low, high, (low > 0).astype(float) - (high < 0))


def run_repeats(cell: RepeatCell, draws: int, runs: int, seed: int) -> list[Outcome]:
    """Without true differences and with mixed ones."""
    crc = zlib.crc32(cell.name.encode())
    data, counts = np.random.default_rng([crc, seed]), np.random.default_rng([crc, draws])
    outcomes = {
        (truth, rule): Outcome(cell.name, truth, rule, draws)
        for truth in ("none", "mixed")
        for rule in ("common",)
    }
    started = time.process_time()
    sizes = np.ones((BATCH, cell.units))
    level = np.full(BATCH, ALPHA / 2)
    while outcomes["none", "common"].runs < runs:
        errors, spreads = draw_repeats(cell, data, BATCH)
        moments = Moments.from_sums(errors, sizes)
        t = draw_t(moments, sizes, counts, draws).reshape(*moments.mean.shape, -1)
        student = special.stdtrit(cell.units - 1, 1 - ALPHA / 2)
        ends = [np.maximum(find_critical(each, moments.usable, level), student) for each in (t, -t)]
        total = np.sqrt(
            np.median(moments.error) ** 2 + len(spreads) * cell.effect**2 / cell.repeats
        )
        for name in ("none", "mixed"):
            truth = np.zeros(cell.systems)
            if name == "mixed":
                half = cell.systems // 2
                truth[half:] = np.linspace(1.5, 4.5, cell.systems - half) * total
            sums = errors + truth[:, None]
            moments = Moments.from_sums(sums, sizes)
            count(outcomes[name, "common"], decide_new(cell, moments, ends, spreads), truth)
    for outcome in outcomes.values():
        outcome.seconds = time.process_time() - started
    return [*outcomes.values()]


def true_means(kind: str, systems: int) -> FloatArray:
    """(systems,): the first is a best one."""
    if kind == "ladder":
        return np.asarray(-0.02 * (np.arange(systems) % 10))
    return np.asarray(np.where(np.arange(systems) < 2, 0.0, -1.0 if kind == "apart" else 0.0))


def draw_values(rng: np.random.Generator, means: FloatArray, queries: int) -> FloatArray:
    """(systems, queries): normal values; each pair's differences have the same spread."""
    own = SPREAD / np.sqrt(2)
    shared = np.sqrt(SD**2 - own**2) * rng.standard_normal(queries)
    noise = own * rng.standard_normal((len(means), queries))
    return np.asarray(means[:, None] + shared + noise)


@dataclass(frozen=True)
class BestCell:
    """A design of systems of which one is the best.

    Attributes:
        kind: Of the values.
        systems: S.
        units: G.
        draw: A generator and a number of runs → sums of values by unit; the truth is of systems.
    """

    kind: str
    systems: int
    units: int
    draw: Callable[[np.random.Generator, int], Sample]

    @property
    def name(self) -> str:
        """Unique."""
        return f"best group, {self.kind}, {self.systems} systems, {self.units} units"


def list_best() -> Iterator[BestCell]:
    """All designs of best groups."""
    worlds = {name: load_world(name) for name in NAMES}
    for units in (60, 200, 26, 1_000):
        for systems in (10, 30):
            for kind in KINDS:
                yield BestCell(kind, systems, units, _draw_normal(kind, systems, units))
            yield BestCell("gains on 10%", systems, units, _draw_gaining(systems, units))
            settings = (DEFAULT, *(NEAR if systems == 10 else FAR))
            places = [SETTINGS.index(each) for each in settings]
            for name, measure in product(NAMES, MEASURES):
                measures, codes = worlds[name]
                draw = draw_world(measures[measure][places], codes, units, flipped=False)
                yield BestCell(f"{name} {measure}", systems, units, draw)


def _draw_normal(
    kind: str, systems: int, units: int
) -> Callable[[np.random.Generator, int], Sample]:
    means = true_means(kind, systems)

    def draw(rng: np.random.Generator, runs: int) -> Sample:
        values = np.array([draw_values(rng, means, units) for _ in range(runs)])
        return Sample(values, np.ones((runs, units)), means)

    return draw


def _draw_gaining(systems: int, units: int) -> Callable[[np.random.Generator, int], Sample]:
    """Every system gains on a tenth of the queries, the last ones up to twice as much."""
    inner = draw_gains(0.1, systems, units)
    factors = np.linspace(1, 2, systems)

    def draw(rng: np.random.Generator, runs: int) -> Sample:
        sample = inner(rng, runs)
        return Sample(sample.sums * factors[:, None], sample.sizes, sample.truth * factors)

    return draw


#: Samples that share counts where there are hundreds of pairs.
BEST_BATCH: Final = 4


def run_best(cell: BestCell, draws: int, runs: int, seed: int) -> list[Outcome]:
    """How often the best system is left out: ``uncovered``."""
    crc = zlib.crc32(cell.name.encode())
    data, counts = np.random.default_rng([crc, seed]), np.random.default_rng([crc, draws])
    outcomes = {rule: Outcome(cell.name, "as drawn", rule, draws) for rule in ("common", "scaled")}
    started = time.process_time()
    first, second = np.triu_indices(cell.systems, 1)
    while outcomes["common"].runs < runs:
        sample = cell.draw(data, BEST_BATCH)
        best = int(sample.truth.argmax())
        pairs = sample.sums[:, first] - sample.sums[:, second]
        pairs[np.abs(pairs) < 1e-12] = 0
        moments = Moments.from_sums(pairs, sample.sizes)
        t = np.abs(draw_t(moments, sample.sizes, counts, draws)).reshape(*moments.mean.shape, -1)
        usable = moments.usable
        size = np.maximum((moments.changed > 0).sum(axis=1), 1)
        with np.errstate(divide="ignore", invalid="ignore"):
            observed = np.where(moments.error > 0, moments.mean / moments.error, 0)
        is_worse = np.where(first == best, observed < 0, (second == best) & (observed > 0))
        level = ALPHA * usable.sum(axis=1) / size
        student = float(special.stdtrit(cell.units - 1, 1 - ALPHA / 2))
        scaled = find_scaled(t, usable, level, student, sides=2)
        for rule, critical in (
            ("common", np.maximum(find_critical(t, usable, level), student)),
            ("scaled", scaled),
        ):
            shown = usable & (np.abs(observed) > critical)
            outcome = outcomes[rule]
            outcome.runs += len(shown)
            outcome.uncovered += int((shown & is_worse).any(axis=1).sum())
            outcome.rows += shown.size
            outcome.intervals += int(usable.sum())
            outcome.shown += int(shown.sum())
    for outcome in outcomes.values():
        outcome.seconds = time.process_time() - started
    return [*outcomes.values()]
