"""Groups of queries, and the random draws from them.

Queries of one group, such as one topic asked twice, are correlated, so intervals and sign flips go
by group. Without groups each query is one. The labels of the groups do not matter.

Random numbers are the raw words of PCG64, whose stream numpy guarantees; the methods of its
Generator have no such guarantee. A seed therefore gives the same numbers on every machine.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from fusion_bench.data.ordering import FloatArray, IntArray
from fusion_bench.errors import ConfigError, DataError

#: Resamples are drawn in blocks of about this size: bounded memory, and it stays in the cache.
BLOCK_BYTES = 1 << 22


def group_codes(groups: IntArray | None, queries: int) -> tuple[IntArray, int]:
    """Codes 0 … G−1 in order of first appearance, and G."""
    if groups is None:
        return np.arange(queries, dtype=np.int64), queries
    if groups.shape != (queries,):
        raise ConfigError(
            f"groups: need one code per query, shape ({queries},), not {groups.shape}"
        )
    labels, first, inverse = np.unique(groups, return_index=True, return_inverse=True)
    new_codes = np.empty(len(labels), dtype=np.int64)
    new_codes[np.argsort(first)] = np.arange(len(labels))
    return new_codes[inverse], len(labels)


def draw_groups(count: int, resamples: int, seed: int) -> Iterator[IntArray]:
    """Groups drawn with replacement, in blocks of shape (b, G): whole resamples, one a row.

    Args:
        count: G; each of 0 … G−1 is as likely, to within G/2^32.
        resamples: Rows over all blocks.
        seed: Seed of the draws; the size of the blocks changes no draw.
    """
    for words in random_words(seed, resamples, -(-count // 2), row_bytes=24 * count):
        halves = words.astype("<u8", copy=False).view("<u4")[:, :count].astype(np.int64)
        halves *= count
        halves >>= 32
        yield halves


def random_words(
    seed: int, rows: int, width: int, *, row_bytes: int
) -> Iterator[NDArray[np.uint64]]:
    """Random words of shape (block, width), ``rows`` in all; no block's size changes a word."""
    if seed < 0:
        raise ConfigError(f"seed: must be 0 or more, not {seed}")
    source = np.random.PCG64(seed)
    step = max(1, BLOCK_BYTES // row_bytes)
    for start in range(0, rows, step):
        block = min(step, rows - start)
        yield source.random_raw(block * width).reshape(block, width)


def check_values(values: FloatArray, *, dimensions: int) -> None:
    """Refuse values of another shape, none at all, and any that is not finite."""
    if values.ndim != dimensions:
        raise ConfigError(f"values: need {dimensions} dimension(s), not shape {values.shape}")
    if not values.shape[-1]:
        raise DataError("values: a mean needs at least one query, and there is none")
    if not np.isfinite(values).all():
        index = tuple(int(i) for i in np.argwhere(~np.isfinite(values))[0])
        raise DataError(f"values{list(index)}: must be finite, not {values[index]}")
