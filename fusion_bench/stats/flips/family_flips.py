"""The largest |t| of a family over the flips of its groups."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from fusion_bench.data.ordering import FloatArray
from fusion_bench.stats.flips.flipped_statistics import FlippedStatistics
from fusion_bench.stats.flips.shares import FlippedShares
from fusion_bench.stats.flips.sign_flips import draw_flips, enumerate_flips

#: Up to so many changed groups every flip is enumerated.
MOST_EXACT_GROUPS = 16
#: Numbers held at once while flips are computed: 16 MB.
BLOCK_NUMBERS = 1 << 21


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
