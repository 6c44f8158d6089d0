"""The trial of ``stats.inference`` beside the rule of sign flips.

Every cell has 2,000 independent samples of a design whose true differences are known. The new rules
draw 2,000 or 10,000 times; today's has 2,000 flips of differences and 2,000 of residuals, without
its rule for skew. Counts and flips are shared by 20 samples of a cell, on which they do not depend;
the data are the same for all rules.

The rule of the decision, written before the first run: the new rule is adopted if in every cell

1. all intervals that a family gets hold together in at least 94 % of the samples,
2. any false answer (shown, and not of the true sign) comes in at most 5 %,
3. the share of rows with an answer is not lower than today's by more than 3 points, with 60 units
   or more,
4. the best group holds the best in at least 95 % (cells of best groups).

Shares are read by Clopper–Pearson intervals at level 1 − .05 ÷ cells; the mean of line 3 with as
many standard errors. With fewer than 20 units there are no intervals: line 2 alone. Where rare
losses are planted, only samples count in which every row has at least 10 losing units; cells in
which fewer than 20 are expected are left out, because that condition would choose samples that are
worse than the truth. Groups of which the largest lose are promised nothing below 200 units, of
which 20 are large; they are tabled. A row without an interval is "few", and vacuously covered.

Rules: ``common``, one critical value for all rows with at least 10 changed units, as the rule was
first written; ``scaled``, that of ``stats.inference``, written after ``common`` and variants with
families by the number of changed units had been tried on the same cells; ``flips``, that of version
0.1.0.

python -m benchmarks.studies.simulations.inference_trial FILE.csv KIND [--draws B] [--runs N]
"""

from __future__ import annotations

import argparse
import csv
import os
import time
import zlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

from benchmarks.studies.simulations.inference_cells import Cell, Sample, list_cells
from fusion_bench.data.ordering import NOISE, BoolArray, FloatArray
from fusion_bench.stats.inference import LONG_TAIL, MIN_CHANGED, MIN_UNITS
from fusion_bench.util.special_functions import special

ALPHA, RUNS, FLIPS = 0.05, 2_000, 2_000
#: So many draws are tried without today's rule beside them.
FULL: Final = 10_000
#: The rules of draws.
DRAWN: Final = ("common", "scaled")
#: With fewer changed units, and fewer than half, sign flips must agree, and there is no interval.
MANY, FLIPPED = 30, 60
#: Samples that share counts and flips.
BATCH: Final = 20
#: Draws in one product of matrices.
BLOCK: Final = 2_000
#: An error of a draw up to this share is 0, in single precision.
ROUNDING: Final = 1e-3


@dataclass
class Outcome:
    """What a rule did in a cell.

    Attributes:
        cell: Its name.
        truth: ``as drawn``, ``none``, or ``mixed``.
        rule: one of ``DRAWN``, or ``flips``.
        draws: B.
        runs: Samples.
        uncovered: Samples in which some interval misses its true difference.
        false: Samples with a false answer.
        rows: Rows, over all samples.
        intervals: Those with an interval.
        shown: Those with an answer.
        lost: Mean over samples of today's share of rows with an answer minus this rule's.
        lost_error: Its standard error.
        width: Median of the width of an interval ÷ today's, where both have one.
        seconds: CPU, of all rules and truths.
    """

    cell: str
    truth: str
    rule: str
    draws: int
    runs: int = 0
    uncovered: int = 0
    false: int = 0
    rows: int = 0
    intervals: int = 0
    shown: int = 0
    lost: float = 0.0
    lost_error: float = 0.0
    width: float = 0.0
    seconds: float = 0.0


@dataclass(frozen=True, eq=False)
class Decisions:
    """What a rule says of a batch: (runs, R) each; ends without interval are NaN."""

    low: FloatArray
    high: FloatArray
    shown: FloatArray  # the sign of an answer, or 0


@dataclass(frozen=True, eq=False)
class Moments:
    """Means, errors and residuals of a batch."""

    mean: FloatArray
    error: FloatArray
    residuals: FloatArray
    changed: FloatArray
    off: FloatArray

    @classmethod
    def from_sums(cls, sums: FloatArray, sizes: FloatArray) -> Moments:
        """Of (runs, R, G) sums by unit of (runs, G) queries."""
        totals, count = sizes.sum(axis=1)[:, None], sizes.shape[1]
        mean = sums.sum(axis=2) / totals
        residuals = sums - mean[:, :, None] * sizes[:, None]
        error = np.sqrt((residuals**2).sum(axis=2) * count / (count - 1)) / totals
        changed = (np.abs(sums) > NOISE).sum(axis=2)
        values = sums / sizes[:, None]
        middle = np.median(values, axis=2, keepdims=True)
        return cls(mean, error, residuals, changed, (np.abs(values - middle) > NOISE).sum(axis=2))

    @property
    def usable(self) -> BoolArray:
        """(runs, R): rows with an interval."""
        enough = (self.changed >= MIN_CHANGED) & (self.off >= MIN_CHANGED)
        return np.asarray(enough & (self.residuals.shape[2] >= MIN_UNITS))


def draw_counts(rng: np.random.Generator, draws: int, units: int) -> np.ndarray:
    """(draws, units), single precision."""
    codes = rng.integers(0, units, (draws, units)) + np.arange(0, draws * units, units)[:, None]
    return np.bincount(codes.ravel(), minlength=draws * units).reshape(draws, units).astype("f4")


def draw_t(moments: Moments, sizes: FloatArray, rng: np.random.Generator, draws: int) -> np.ndarray:
    """t* of every row, (runs · R, draws), single precision."""
    runs, rows, units = moments.residuals.shape
    is_single = bool((sizes == 1).all())
    scale = moments.error.max() * (units if is_single else 1)
    flat = np.ascontiguousarray(moments.residuals.reshape(-1, units).T / scale)
    factor = units / (units - 1)
    linear, squares = flat.astype("f4"), (factor * flat**2).astype("f4")
    n = np.repeat(sizes, rows, axis=0).T
    weighted, n1, n2 = (each.astype("f4") for each in (-2 * factor * flat * n, n, factor * n**2))
    errors = (moments.error / moments.error.max()).reshape(1, -1).astype("f4")
    found = np.empty((runs * rows, draws), dtype="f4")
    for start in range(0, draws, BLOCK):
        counts = draw_counts(rng, min(BLOCK, draws - start), units)
        shifts, spread = counts @ linear, counts @ squares
        if is_single:
            spread -= shifts * shifts * np.float32(factor / units)
        else:
            totals = counts @ n1
            shifts /= totals
            spread += shifts * (shifts * (counts @ n2) + counts @ weighted)
        np.maximum(spread, 0, out=spread)
        np.sqrt(spread, out=spread)
        if not is_single:
            spread /= totals
        is_zero = spread <= ROUNDING * errors
        with np.errstate(divide="ignore", invalid="ignore"):
            t = shifts / spread
        if is_zero.any():
            signs = np.where(np.abs(shifts) <= ROUNDING * errors, 0, np.sign(shifts))
            t[is_zero] = np.where(signs == 0, 0, np.copysign(np.inf, signs))[is_zero]
        found[:, start : start + len(counts)] = t.T
    return found


def find_critical(t: np.ndarray, chosen: BoolArray, level: FloatArray) -> FloatArray:
    """(runs, R): c of the greatest t* of the chosen rows; infinite for other rows.

    Args:
        t: Shape (runs, R, draws): t*, or −t*.
        chosen: (runs, R): rows that form a family.
        level: (runs,): probability of the tail.
    """
    critical = np.full(chosen.shape, np.inf)
    for run, mask in enumerate(chosen):
        rank = int((t.shape[2] + 1) * level[run] * (1 + NOISE))
        if mask.any() and rank:
            greatest = t[run, mask].max(axis=0)
            critical[run, mask] = -np.partition(-greatest, rank - 1)[rank - 1]
    return critical


def count_distinct(sums: FloatArray, chosen: BoolArray) -> FloatArray:
    """(runs,): distinct rows among the chosen ones."""
    return np.array(
        [
            len({row.tobytes() for row in rows[mask]})
            for rows, mask in zip(sums, chosen, strict=True)
        ]
    )


def flip_shares(sums: FloatArray, most: int) -> FloatArray:
    """(n,): the share of sign flips of (n, G) sums that reach the observed |Σ|."""
    largest = -np.sort(-np.abs(sums), axis=1)[:, :most]
    signs = np.ones((1, 1))
    for _ in range(most - 1):
        signs = np.block([[signs, np.ones((len(signs), 1))], [signs, -np.ones((len(signs), 1))]])
    observed = np.abs(sums.sum(axis=1)) - 1e-9
    shares = np.empty(len(sums))
    step = max(1, 20_000_000 // len(signs))
    for start in range(0, len(sums), step):
        part = slice(start, start + step)
        shares[part] = (np.abs(largest[part] @ signs.T) >= observed[part, None]).mean(axis=1)
    return shares


def decide_drawn(
    sums: FloatArray, moments: Moments, t: np.ndarray, rng: np.random.Generator
) -> dict[str, Decisions]:
    """The rules of draws for a batch, by name."""
    usable, t = moments.usable, t.reshape(*moments.usable.shape, -1)
    size = np.maximum(count_distinct(sums, moments.changed > 0), 1)
    level = ALPHA * count_distinct(sums, usable) / size / 2
    units = sums.shape[2]
    least = special.stdtrit(units - 1, 1 - np.maximum(level, 1e-12))[:, None]
    ends = [np.maximum(find_critical(turned, usable, level), least) for turned in (t, -t)]
    made = {"common": _decide(sums, moments, size, usable, ends)}
    student = float(special.stdtrit(units - 1, 1 - ALPHA / 2))
    ends = [find_scaled(turned, usable, level, student) for turned in (t, -t)]
    every = _decide(sums, moments, size, usable, ends)
    kept = (moments.off >= MANY) | (2 * moments.off >= units)
    low, high = (np.where(kept, end, np.nan) for end in (every.low, every.high))
    shown = every.shown.copy()
    doubtful = usable & ~kept & (shown != 0) & (moments.changed < FLIPPED)
    if doubtful.any():
        signs = rng.choice(np.array([-1.0, 1.0]), (units, FLIPS))
        rows = sums[doubtful]
        reached = np.abs(rows @ signs) >= np.abs(rows.sum(axis=1, keepdims=True)) - 1e-9
        p = (1 + reached.sum(axis=1)) / (FLIPS + 1)
        shown[doubtful] *= p * np.broadcast_to(size[:, None], doubtful.shape)[doubtful] <= ALPHA
    made["scaled"] = Decisions(low, high, shown)
    return made


def find_scaled(
    t: np.ndarray, chosen: BoolArray, level: FloatArray, student: float, sides: int = 1
) -> FloatArray:
    """(runs, R): c of the greatest t* in units of each row's own quantile, times that quantile.

    Args:
        t: Shape (runs, R, draws): t*, or −t*.
        chosen: (runs, R): rows that form a family.
        level: (runs,): probability of the tail.
        student: The quantile below which no scale lies.
        sides: 2 = t* is of both tails.
    """
    critical = np.full(chosen.shape, np.inf)
    draws = t.shape[2]
    place = int((draws + 1) * ALPHA * sides / 2 * (1 + NOISE))
    for run, mask in enumerate(chosen):
        rank = int((draws + 1) * level[run] * (1 + NOISE))
        if not (mask.any() and rank):
            continue
        own = -np.partition(-t[run, mask], place - 1, axis=1)[:, place - 1]
        own = np.maximum(np.maximum(own / LONG_TAIL, np.median(own)), student)
        with np.errstate(invalid="ignore"):
            scaled = np.where(np.isinf(own)[:, None], 0, t[run, mask] / own[:, None])
        greatest = scaled.max(axis=0)
        common = -np.partition(-greatest, rank - 1)[rank - 1]
        critical[run, mask] = np.maximum(common, 1) * own
    return critical


def _decide(
    sums: FloatArray,
    moments: Moments,
    size: FloatArray,
    usable: BoolArray,
    ends: Sequence[FloatArray],
) -> Decisions:
    units = sums.shape[2]
    with np.errstate(divide="ignore", invalid="ignore"):
        t = np.where(moments.error > 0, moments.mean / moments.error, 0)
        low = np.where(usable, moments.mean - ends[0] * moments.error, np.nan)
        high = np.where(usable, moments.mean + ends[1] * moments.error, np.nan)
    shown = np.where(usable, (t > ends[0]).astype(float) - (t < -ends[1]), 0)
    few = (moments.changed > 0) & ((moments.changed < MIN_CHANGED) | (units < MIN_UNITS))
    few &= 2.0 ** (1 - moments.changed) * size[:, None] <= ALPHA
    if few.any():
        most = int(moments.changed[few].max())
        p = flip_shares(sums[few], most) * np.broadcast_to(size[:, None], few.shape)[few]
        shown[few] = np.sign(moments.mean[few]) * (p <= ALPHA)
    return Decisions(low, high, shown)


def decide_flips(
    sums: FloatArray, sizes: FloatArray, moments: Moments, rng: np.random.Generator
) -> Decisions:
    """Today's rule for a batch: flips of differences and residuals, never below Student's."""
    units, totals = sums.shape[2], sizes.sum(axis=1)[:, None]
    inverse = totals / (totals - sizes)
    error = np.sqrt((moments.residuals**2 * inverse[:, None]).sum(axis=2)) / totals
    weights = sizes**2 * inverse
    cross = weights.sum(axis=1) ** 2 - (weights**2).sum(axis=1)
    freedom = totals[:, 0] ** 2 / ((sizes**2).sum(axis=1) + cross / totals[:, 0] ** 2)
    with np.errstate(divide="ignore", invalid="ignore"):
        t = np.where(error > 0, np.abs(moments.mean) / error, 0)
    critical = flip_critical(sums, sizes, moments.residuals, t.max(axis=1), rng)
    critical = np.maximum(critical, special.stdtrit(freedom, 1 - ALPHA / 2))[:, None]
    has = (moments.changed >= MIN_CHANGED) & (units >= MIN_UNITS)
    low = np.where(has, moments.mean - critical * error, np.nan)
    high = np.where(has, moments.mean + critical * error, np.nan)
    shown = np.where(t >= critical, np.sign(moments.mean), 0)
    return Decisions(low, high, shown)


def flip_critical(
    sums: FloatArray,
    sizes: FloatArray,
    residuals: FloatArray,
    observed: FloatArray,
    rng: np.random.Generator,
) -> FloatArray:
    """(runs,): c of flips of differences and of residuals, not yet compared with Student's."""
    totals = sizes.sum(axis=1)[:, None]
    inverse = totals / (totals - sizes)
    flips = rng.integers(0, 2, (FLIPS, sums.shape[2])).astype("f4") * 2 - 1
    critical = np.zeros(len(sums))
    for values in (sums, residuals):
        largest = np.vstack((_flip(values, sizes, inverse, flips), observed))
        critical = np.maximum(critical, np.sort(largest, axis=0)[-int(ALPHA * (FLIPS + 1))])
    return critical


def _flip(
    values: FloatArray, sizes: FloatArray, inverse: FloatArray, flips: np.ndarray
) -> FloatArray:
    """(flips, runs): the largest |t| of sums by unit after each flip, with CR2's error."""
    runs, rows, units = values.shape
    w = inverse[:, None]
    constant = np.maximum((w * values**2).sum(axis=2), 1e-30)
    if (sizes == 1).all():  # t grows with |Σ d| / √Σ d²
        norm = np.sqrt(constant * (units - 1) / units)
        scaled = (values / norm[:, :, None]).reshape(-1, units).T.astype("f4")
        x = (flips @ scaled).reshape(-1, runs, rows)
        x = np.maximum(x.max(axis=2), -x.min(axis=2)).astype(float)
        x = np.minimum(x, np.sqrt(units * (1 - 1e-7)))
        return np.asarray(x * np.sqrt((units - 1) / (units - x**2)))
    total = flips @ values.reshape(-1, units).T.astype("f4")
    weighted = flips @ (-2 * values * (w * sizes[:, None])).reshape(-1, units).T.astype("f4")
    constant = constant.reshape(-1).astype("f4")
    mean = total / np.repeat(sizes.sum(axis=1), rows).astype("f4")
    weighted += mean * np.repeat((inverse * sizes**2).sum(axis=1), rows).astype("f4")
    squares = np.maximum(constant + mean * weighted, constant * np.float32(1e-6))
    return np.asarray((np.abs(total) / np.sqrt(squares)).reshape(-1, runs, rows).max(axis=2))


def run_cell(cell: Cell, draws: int, runs: int, seed: int) -> list[Outcome]:
    """Both rules on as many samples of a cell."""
    crc = zlib.crc32(cell.name.encode())
    data, counts = np.random.default_rng([crc, seed]), np.random.default_rng([crc, draws])
    truths = ("none", "mixed") if cell.is_shifted else ("as drawn",)
    rules = DRAWN if draws >= FULL else (*DRAWN, "flips")
    outcomes = {
        (truth, rule): Outcome(cell.name, truth, rule, FLIPS if rule == "flips" else draws)
        for truth in truths
        for rule in rules
    }
    lost: dict[tuple[str, str], list[FloatArray]] = {key: [] for key in outcomes}
    widths: dict[tuple[str, str], list[float]] = {key: [] for key in outcomes}
    started = time.process_time()
    while outcomes[truths[0], rules[0]].runs < runs:
        sample = cell.draw(data, BATCH)
        if cell.is_conditional:
            kept = sample.losing >= MIN_CHANGED
            if not kept.any():
                continue
            sample = Sample(sample.sums[kept], sample.sizes[kept], sample.truth)
        moments = Moments.from_sums(sample.sums, sample.sizes)
        t = draw_t(moments, sample.sizes, counts, draws)
        for name in truths:
            sums, truth = sample.sums, sample.truth
            if name == "mixed":
                truth = list_effects(cell, float(np.median(moments.error)))
                sums = sums + truth[:, None] * sample.sizes[:, None]
                moments = Moments.from_sums(sums, sample.sizes)
            made = decide_drawn(sums, moments, t, counts)
            if draws < FULL:
                made["flips"] = decide_flips(sums, sample.sizes, moments, counts)
            for rule, decisions in made.items():
                count(outcomes[name, rule], decisions, truth)
                if draws < FULL:
                    flips = made["flips"]
                    shares = [(each.shown != 0).mean(axis=1) for each in (flips, decisions)]
                    lost[name, rule].append(shares[0] - shares[1])
                    with np.errstate(invalid="ignore"):
                        ratio = (decisions.high - decisions.low) / (flips.high - flips.low)
                    widths[name, rule] += ratio[np.isfinite(ratio)].tolist()
    for key, outcome in outcomes.items():
        values = np.concatenate(lost[key]) if lost[key] else np.zeros(1)
        outcome.lost = float(values.mean())
        outcome.lost_error = float(values.std() / np.sqrt(len(values)))
        outcome.width = float(np.median(np.array(widths[key]))) if widths[key] else float("nan")
        outcome.seconds = time.process_time() - started
    return [*outcomes.values()]


def list_effects(cell: Cell, error: float) -> FloatArray:
    """(R,): half of the true differences are 0, the others 1.5 to 4.5 standard errors."""
    if cell.systems == 1:
        return np.array([2.5 * error])
    effects = np.zeros(cell.systems)
    half = cell.systems // 2
    effects[half:] = np.linspace(1.5, 4.5, cell.systems - half) * error
    return effects


def count(outcome: Outcome, made: Decisions, truth: FloatArray) -> None:
    """Add what a rule says of a batch."""
    missed = (made.low > truth + NOISE) | (made.high < truth - NOISE)
    false = (made.shown != 0) & (made.shown != np.sign(truth))
    outcome.runs += len(missed)
    outcome.uncovered += int(missed.any(axis=1).sum())
    outcome.false += int(false.any(axis=1).sum())
    outcome.rows += missed.size
    outcome.intervals += int((~np.isnan(made.low)).sum())
    outcome.shown += int((made.shown != 0).sum())


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the cells that the file does not hold yet."""
    from benchmarks.studies.simulations import inference_repeats, inference_worlds

    kinds: dict[str, tuple[Callable[[], Iterable[Any]], Callable[..., list[Outcome]]]] = {
        "designs": (list_cells, run_cell),
        "worlds": (inference_worlds.list_worlds, run_cell),
        "repeats": (inference_repeats.list_repeats, inference_repeats.run_repeats),
        "best": (inference_repeats.list_best, inference_repeats.run_best),
    }
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("path", type=Path)
    parser.add_argument("kind", choices=kinds)
    parser.add_argument("--draws", type=int, default=10_000)
    parser.add_argument("--runs", type=int, default=RUNS)
    parser.add_argument("--seed", type=int, default=2)
    parser.add_argument("--only", default="")
    parser.add_argument("--units", type=int, nargs="*", default=())
    options = parser.parse_args(arguments)
    done = set()
    if options.path.exists():
        with options.path.open(encoding="utf-8", newline="") as file:
            done = {row["cell"] for row in csv.DictReader(file)}
    list_all, run = kinds[options.kind]
    for cell in list_all():
        if options.units and cell.units not in options.units:
            continue
        if cell.name not in done and options.only in cell.name:
            write_outcomes(run(cell, options.draws, options.runs, options.seed), options.path)


def write_outcomes(outcomes: Sequence[Outcome], path: Path) -> None:
    """Append rows to a CSV file."""
    is_new = not path.exists()
    with path.open("a", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(asdict(outcomes[0])), lineterminator="\n")
        if is_new:
            writer.writeheader()
        for each in outcomes:
            cells = asdict(each).items()
            writer.writerow({k: f"{v:.5g}" if isinstance(v, float) else v for k, v in cells})


if __name__ == "__main__":
    main()
