"""How many queries a pass takes."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from benchmarks.studies.simulations._gate_runs import (
    CHANGES,
    draw_null,
    find_passes,
    read_differences,
)
from benchmarks.studies.simulations.promise import Promise

TITLE = "How many queries a pass takes"
DESCRIPTION = """
The differences of nDCG@10 of a small change (k 60 → 50) and of a large one (rrf → convex) on JQaRA.
Queries are drawn with replacement and labels are swapped, so that there is no true difference.
Either pass: `pass` or `pass on these queries`.
"""
DRAWS = 1_000
SIZES = {0.005: (600, 1000, 2500, 5000), 0.01: (300, 500, 1000, 2000), 0.02: (150, 250, 500, 1000)}


def run(*, draws: int) -> list[Promise]:
    """Measure both changes at every size and tolerance."""
    random = np.random.default_rng(53)
    return list(_measure_passes(draws, random))


def _measure_passes(draws: int, random: np.random.Generator) -> Iterator[Promise]:
    for change in (next(iter(CHANGES)), list(CHANGES)[-1]):
        differences = read_differences()[change][:1]
        for max_drop, sizes in SIZES.items():
            for size in sizes:
                rows = draw_null(differences, (draws, size), random)[0]
                by_t, both = find_passes(rows, max_drop)
                design = f"{change}, max_drop {max_drop:g}, {size:,} queries"
                yield Promise(design, "pass", int(both.sum()), draws)
                yield Promise(design, "either pass", int(by_t.sum()), draws)
