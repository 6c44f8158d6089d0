"""A hundred different candidates on the same queries."""

from __future__ import annotations

import numpy as np

from benchmarks.studies.simulations._gate_runs import (
    CHECKS,
    draw_null,
    find_passes,
    read_differences,
)
from benchmarks.studies.simulations.promise import Promise
from fusion_bench.data.ordering import FloatArray
from fusion_bench.gate.verdict import ALPHA
from fusion_bench.stats.corrections import adjust_holm, randomization_p_values

TITLE = "One hundred candidates on the same queries"
DESCRIPTION = """
200 queries of JQaRA are drawn. Each of 100 candidates differs from the baseline by the
differences of one of four changes, with labels swapped with probability ½ for each candidate
anew, in four checks. Each is checked at the full level, or at 1/100 of it (`always_valid: {runs:
100}`). The p-values of means within 2.5 standard errors of 0 are not computed at 1/100; there a
test has 80,000 flips, and 2,000 at the full level. False passes: 2,000 queries, of which each
candidate loses 1 on a share of exactly max_drop. Power: rrf → convex on 200 queries, moved to the
drop that the full level shows with a power of about .8. Promised: any alarm, and any pass, in at
most 5 %.
"""
DRAWS = 600
CANDIDATES, SIZE = 100, 200
EVENT = "any alarm over 100 candidates"
LEVEL = ALPHA / len(CHECKS)


def run(*, draws: int) -> list[Promise]:
    """Alarms, false passes, and what the sharing costs in power."""
    random = np.random.default_rng(47)
    full = shared = 0
    for seed in range(draws):
        rows = _draw_candidates(random)
        full += _any_alarm(rows, 1, seed, flips=2_000, least_z=1.0)
        shared += _any_alarm(rows, CANDIDATES, seed, flips=80_000, least_z=2.5)
    design = "no true difference, 200 queries, 4 checks"
    return [
        Promise(f"{design}, full level", EVENT, full, draws),
        Promise(
            f"{design}, always_valid",
            "any alarm over 100 candidates",
            shared,
            draws,
            0.05,
            "at most",
        ),
        *_measure_false_passes(draws, random),
        *_measure_power(draws, random),
    ]


def _draw_candidates(random: np.random.Generator) -> FloatArray:
    """The differences of 100 candidates on the same queries, shape (400, n)."""
    changes = list(read_differences().values())
    queries = random.integers(0, changes[0].shape[1], SIZE)
    rows = np.stack([change[:, queries] for change in changes])
    kinds = random.integers(0, len(changes), CANDIDATES)
    signs = random.choice([-1.0, 1.0], (CANDIDATES, 1, SIZE))
    return np.asarray((rows[kinds] * signs).reshape(-1, SIZE))


def _any_alarm(rows: FloatArray, runs: int, seed: int, *, flips: int, least_z: float) -> bool:
    """Whether any of the checks of all candidates alarms."""
    max_drops = np.tile(list(CHECKS.values()), CANDIDATES)
    p = np.ones(len(rows))
    is_tested = rows.sum(axis=1) < -least_z * np.sqrt((rows**2).sum(axis=1))
    if is_tested.any():
        p[is_tested] = randomization_p_values(
            rows[is_tested], resamples=flips, seed=seed, alternative="less"
        )
    adjusted = np.concatenate([adjust_holm(each) for each in p.reshape(CANDIDATES, -1)])
    return bool(((rows.mean(axis=1) < -max_drops) & (adjusted <= ALPHA / runs)).any())


def _measure_false_passes(draws: int, random: np.random.Generator) -> list[Promise]:
    """Any plain pass of 100 candidates that lose exactly m by rare losses of 1."""
    promises = []
    for m in (0.005, 0.01, 0.02):
        size = 2_000
        # A row is decided by its number of losses alone.
        losses = np.arange(size // 10)
        table = -(np.arange(size) < losses[:, None]).astype(np.float64)
        counts = np.minimum(random.binomial(size, m, (draws, CANDIDATES)), len(losses) - 1)
        for runs, name in ((1, "full level"), (CANDIDATES, "always_valid")):
            passes = find_passes(table, m, runs)[1]
            wrong = int(passes[counts].any(axis=1).sum())
            limit = {"limit": 0.05, "side": "at most"} if runs > 1 else {}
            design = f"true drop of max_drop {m:g}, 2,000 queries, {name}"
            promises.append(Promise(design, "any pass over 100 candidates", wrong, draws, **limit))  # type: ignore[arg-type]
    return promises


def _measure_power(draws: int, random: np.random.Generator) -> list[Promise]:
    """Alarms at a true drop, at the full and at the shared level."""
    differences = list(read_differences().values())[-1][:1]
    centered = differences - differences.mean()
    drop = 3.1 * float(centered.std()) / np.sqrt(SIZE)  # z(.9875) + z(.8)
    rows = draw_null(centered, (draws, SIZE), random)[0] - drop
    p = randomization_p_values(rows, resamples=80_000, seed=1, alternative="less")
    return [
        Promise(
            f"true drop of {drop:.3f} in nDCG@10, 200 queries, {name}",
            "alarm",
            int((p <= level).sum()),
            draws,
        )
        for name, level in (("full level", LEVEL), ("always_valid", LEVEL / CANDIDATES))
    ]
