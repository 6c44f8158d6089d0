"""What is found where some settings are truly better: resampled queries of a collection.

The queries of the collection are the population: a setting's true gain is its mean over them. The
tuning and the held-out queries of a campaign are drawn from it with replacement, so that they are
as independent as queries of tomorrow.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from benchmarks.studies.campaigns.nulls import Scene
from benchmarks.studies.campaigns.pool import Measure
from benchmarks.studies.campaigns.replay import LEVEL
from fusion_bench.campaign.decision import SCREENING_P, detectable_gain, phase_share
from fusion_bench.data.ordering import BoolArray, FloatArray
from fusion_bench.stats.intervals import BETS, log_capital

SEED: Final = 20_310
#: Campaigns a row, and how many are computed together.
DRAWS, BLOCK = 400, 100
TUNING: Final = 834
QUERIES: Final = (200, 400, 833, 1_667, 3_000)
#: True gains, from and below.
GAINS: Final = ((0.01, 0.015), (0.015, 0.02), (0.02, 0.025), (0.025, 0.035), (0.035, 0.05))
#: Phase, ships and asks, declared.
PLANS: Final = ((1, 1, 100), (1, 1, 1_000), (1, 3, 1_000), (2, 3, 1_000))
#: Such candidates a campaign asks about.
ASKED: Final = 20
#: Looks after which the level of one is below 1e-8.
COUNTED_LOOKS: Final = 20


@dataclass(frozen=True)
class PowerRow:
    """How often candidates of some true gain ship.

    Attributes:
        data: Of the collection.
        measure: What is compared.
        queries: Held out.
        phase: Of the ask.
        ships: Declared.
        asks: Declared.
        gain: True gains, from and below.
        candidates: Settings of the pool with such a gain.
        campaigns: How many.
        single: Rule → share of campaigns in which one such candidate ships.
        any_of: Share of campaigns that ship at least one of 20 such candidates.
    """

    data: str
    measure: Measure
    queries: int
    phase: int
    ships: int
    asks: int
    gain: tuple[float, float]
    candidates: int
    campaigns: int
    single: dict[str, float]
    any_of: float


@dataclass(frozen=True, eq=False)
class Draws:
    """Candidates on B draws of held-out and tuning queries.

    Attributes:
        p: Shape (T, B): one-sided Student p, held out.
        log_e: Shape (T, B).
        is_screened: Shape (T, B): not better on the tuning queries.
    """

    p: FloatArray
    log_e: FloatArray
    is_screened: BoolArray


def draw_campaigns(
    differences: FloatArray, queries: int, draws: int, rng: np.random.Generator
) -> Draws:
    """Statistics of every candidate, by products with how often each query is drawn."""
    held_out = _draw_counts(differences.shape[1], queries, draws, rng)
    tuning = _draw_counts(differences.shape[1], TUNING, draws, rng)
    with np.errstate(divide="ignore"):
        logs = [np.log(np.maximum(1 + bet * differences, 1e-300)) @ held_out for bet in BETS]
    return Draws(
        p=_student_p(differences, held_out, queries),
        log_e=log_capital(np.stack(logs, axis=-1)),
        is_screened=_student_p(differences, tuning, TUNING) > SCREENING_P,
    )


def _draw_counts(size: int, queries: int, draws: int, rng: np.random.Generator) -> FloatArray:
    return rng.multinomial(queries, np.full(size, 1 / size), size=draws).T.astype(np.float64)


def _student_p(differences: FloatArray, counts: FloatArray, queries: int) -> FloatArray:
    from scipy.special import stdtr

    mean = differences @ counts / queries
    variance = (differences**2 @ counts / queries - mean**2) / (queries - 1)
    t = np.where(variance > 0, mean / np.sqrt(np.maximum(variance, 1e-300)), 0.0)
    return np.asarray(stdtr(queries - 1, -t))


def measure_power(
    scene: Scene, queries: Sequence[int] = QUERIES, draws: int = DRAWS
) -> Iterator[PowerRow]:
    """All rows of a collection and measure."""
    differences = scene.differences.astype(np.float64)
    true = differences.mean(axis=1)
    for count in queries:
        for gain in GAINS:
            rows = np.flatnonzero((true >= gain[0]) & (true < gain[1]))
            if not len(rows):
                continue
            rng = np.random.default_rng([SEED, count])
            blocks = [
                draw_campaigns(differences[rows], count, min(BLOCK, draws - start), rng)
                for start in range(0, draws, BLOCK)
            ]
            joined = Draws(
                *(
                    np.concatenate([getattr(b, name) for b in blocks], axis=1)
                    for name in vars(blocks[0])
                )
            )
            for plan in PLANS:
                single, any_of = _count_ships(joined, *plan)
                yield PowerRow(
                    scene.pool.name,
                    scene.measure,
                    count,
                    *plan,
                    gain,
                    len(rows),
                    draws,
                    single,
                    any_of,
                )


def _count_ships(draws: Draws, phase: int, ships: int, asks: int) -> tuple[dict[str, float], float]:
    """Rule → share of candidates that ship; share of campaigns that ship one of 20."""
    share = phase_share(phase, ships=ships, asks=asks, level=LEVEL)
    tails_t = (draws.p <= share) & ~draws.is_screened
    campaign = tails_t & (draws.log_e >= -np.log(share))
    looks = [(draws.p <= LEVEL * 0.5**j).mean() for j in range(1, COUNTED_LOOKS + 1)]
    single = {
        "campaign": campaign.mean(),
        "tails t": tails_t.mean(),
        "bonferroni": (draws.p <= LEVEL / asks).mean(),
        "first look": looks[0],
        "looks": sum(looks) / asks,
        "unprotected": (draws.p <= LEVEL).mean(),
    }
    rows = np.random.default_rng(SEED).permutation(len(campaign))[:ASKED]
    any_of = campaign[rows].any(axis=0).mean()
    return {rule: float(value) for rule, value in single.items()}, float(any_of)


@dataclass(frozen=True)
class DetectableRow:
    """Whether the gain that ``open`` prints is found as often as it says.

    Attributes:
        data: Of the collection.
        measure: What is compared.
        queries: Held out.
        asks: Declared, one phase.
        printed: Median over candidates of the detectable gain, from the tuning queries.
        candidates: Settings whose true gain is within a tenth of what is printed for them.
        found: Share of draws in which these ship; NaN without any.
        shifted: The same of all settings, their differences shifted to what is printed.
        by_spread: Median of what is printed where only the standard deviation is known.
    """

    data: str
    measure: Measure
    queries: int
    asks: int
    printed: float
    candidates: int
    found: float
    shifted: float
    by_spread: float


def check_detectable(scene: Scene, queries: int, asks: int, draws: int = 50) -> DetectableRow:
    """Print the detectable gain from 834 tuning queries, and see how often it ships."""
    rng = np.random.default_rng([SEED, queries, asks])
    share = phase_share(1, ships=1, asks=asks, level=LEVEL)
    differences = scene.differences.astype(np.float64)
    differences = differences[(differences != 0).mean(axis=1) > 0.05]
    rows = rng.permutation(len(differences))[:300]
    printed, spread, found, shifted = [], [], [], []
    for row in differences[rows]:
        tuning = rng.choice(row, TUNING)
        gain = detectable_gain(tuning, queries=queries, share=share)
        plain = detectable_gain(tuning.std() * np.array([-1.0, 1.0]), queries=queries, share=share)
        if gain is None or plain is None:
            continue
        printed.append(gain)
        spread.append(plain)
        moved = np.clip(row - row.mean() + gain, -1, 1)
        shifted.append(_ship_share(moved, queries, share, draws, rng))
        if 0.9 * gain <= row.mean() <= 1.1 * gain:
            found.append(_ship_share(row, queries, share, draws, rng))
    return DetectableRow(
        data=scene.pool.name,
        measure=scene.measure,
        queries=queries,
        asks=asks,
        printed=float(np.median(printed)),
        candidates=len(found),
        found=float(np.mean(found)) if found else float("nan"),
        shifted=float(np.mean(shifted)),
        by_spread=float(np.median(spread)),
    )


def _ship_share(
    row: FloatArray, queries: int, share: float, draws: int, rng: np.random.Generator
) -> float:
    found = draw_campaigns(row[None], queries, draws, rng)
    return float(((found.p <= share) & (found.log_e >= -np.log(share))).mean())
