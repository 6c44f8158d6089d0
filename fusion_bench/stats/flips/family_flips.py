"""The largest |t| of a family over the flips of its groups."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from fusion_bench.data.ordering import FloatArray
from fusion_bench.stats.flips.flipped_statistics import FlippedStatistics
from fusion_bench.stats.flips.sign_flips import draw_flips, enumerate_flips

#: Up to so many changed groups every flip is enumerated.
MOST_EXACT_GROUPS = 16
#: Numbers held at once while flips are computed: 16 MB.
BLOCK_NUMBERS = 1 << 21


def flip_family(
    parts: Sequence[FlippedStatistics],
    is_clear: Callable[[FloatArray], bool],
    seed: int,
    limits: tuple[int, int],
) -> tuple[FloatArray, bool]:
    """The largest share t² / (1 + t²) of the family, as observed and for each flip.

    Args:
        parts: The rows of the family by sets of queries.
        is_clear: Whether these values decide everything, so that no more are drawn.
        seed: Seed of the signs.
        limits: Flips to draw at first, and at most.

    Returns:
        Shape (N,), and whether it has every flip that there is.
    """
    groups = {name: i for i, name in enumerate(sorted({name for p in parts for name in p.ids}))}
    if len(groups) <= MOST_EXACT_GROUPS:
        flips = enumerate_flips(len(groups))
        lines = [[groups[name] for name in part.ids] for part in parts]
        return _largest_shares(parts, lambda i, a, b: flips[lines[i], a:b], 0, flips.shape[1]), True
    keys = [part.keys(seed) for part in parts]
    values = np.array([max((float(p.observe().max()) for p in parts), default=0.0)])
    start, stop = 0, limits[0]
    while True:
        more = _largest_shares(parts, lambda i, a, b: draw_flips(keys[i], a, b), start, stop)
        values = np.concatenate([values, more])
        if stop >= limits[1] or is_clear(values):
            return values, False
        start, stop = stop, min(2 * stop, limits[1])


def _largest_shares(
    parts: Sequence[FlippedStatistics],
    flips_of: Callable[[int, int, int], FloatArray],
    start: int,
    stop: int,
) -> FloatArray:
    """(stop − start,): the largest share of all rows of all parts; bounded memory."""
    widest = max((len(part.ids) + 4 * len(part.units) for part in parts), default=1)
    step = max(64, BLOCK_NUMBERS // max(widest, 1) // 64 * 64)
    values = np.zeros(stop - start)
    for a in range(start, stop, step):
        b = min(a + step, stop)
        for i, part in enumerate(parts):
            if part.ids:
                largest = part.compute(flips_of(i, a, b)).max(axis=0)
                np.maximum(
                    values[a - start : b - start], largest, out=values[a - start : b - start]
                )
    return values
