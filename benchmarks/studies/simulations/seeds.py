"""Seeds: answers that change with the seed of the flips."""

from __future__ import annotations

import numpy as np

from benchmarks.studies.simulations.max_t import SAMPLERS, SD, SYSTEMS
from benchmarks.studies.simulations.promise import Promise
from fusion_bench.data.ordering import FloatArray
from fusion_bench.stats.comparison import NOT_SHOWN, Answer, decide_answer
from fusion_bench.stats.max_t import FIRST_DRAWS, MOST_DRAWS, FamilyRow, max_t

TITLE = "Seeds"
DESCRIPTION = """
Families of 30 systems on 60 queries, half of them normal and half sparse as in the simulation of
max-T. True differences spread from 0 to the size that is mostly found, so that many p lie near the
level. Each family is judged with 4 seeds at the default limits (10,000 to 1,000,000 flips).
Promised: no answer changes with the seed, unless one of the seeds says "within simulation error". A
fixed number of 10,000 flips stands beside it.
"""
#: Decisions: families of 30 systems.
DRAWS = 360
QUERIES, SEEDS, MIN_GAIN = 60, 4, 0.005
OPEN: Answer = NOT_SHOWN[1]


def run(*, draws: int) -> list[Promise]:
    """So many decisions, in whole families."""
    families = max(draws // SYSTEMS, 1)
    limits = {"default flips": MOST_DRAWS, "10,000 flips": FIRST_DRAWS}
    counts = {name: np.zeros(2, dtype=int) for name in limits}
    rng = np.random.default_rng(SYSTEMS)
    for family in range(families):
        sampler = SAMPLERS["normal" if family % 2 else "sparse"]
        shifts = np.linspace(0, 4.5 * SD / np.sqrt(QUERIES), SYSTEMS)
        values = sampler(rng, QUERIES) + shifts[:, None]
        for name, most in limits.items():
            counts[name] += _count_changes(values, family, most)
    decisions = families * SYSTEMS
    design, plain = counts.values()
    text = f"{families} families, {SEEDS} seeds"
    return [
        Promise(text, "answer changes with the seed", int(design[0]), decisions, 0.0, "at most"),
        Promise(text, "some seed says within simulation error", int(design[1]), decisions),
        Promise(text, "answer would change with 10,000 flips", int(plain[0]), decisions),
    ]


def _count_changes(values: FloatArray, family: int, most: int) -> FloatArray:
    """Systems whose answers differ, and systems where a seed says that it cannot tell.

    With a fixed number of flips no decision is called open.
    """
    keys = tuple(f"family {family}, query {i}" for i in range(values.shape[1]))
    rows = [FamilyRow(row, keys, MIN_GAIN) for row in values]
    changed = [int((row != 0).sum()) for row in values]
    is_fixed = most == FIRST_DRAWS
    answers = []
    for seed in range(SEEDS):
        results = max_t(rows, seed=seed, most_draws=most).rows
        if is_fixed:
            answers.append(["shown" if row.p <= 0.05 else "not shown" for row in results])
            continue
        pairs = zip(results, changed, strict=True)
        answers.append([str(decide_answer(row, changed=count)) for row, count in pairs])
    by_system = [set(column) for column in zip(*answers, strict=True)]
    is_open = [OPEN in column for column in by_system]
    differ = [len(column) > 1 and OPEN not in column for column in by_system]
    return np.array([sum(differ), sum(is_open)])
