"""Signs of groups of queries, from a hash of seed, draw and group id."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from fusion_bench.data.ordering import FloatArray
from fusion_bench.errors import ConfigError
from fusion_bench.util.digests import mix_words
from fusion_bench.util.formatting import check_wanted

#: The increment and the two multipliers of SplitMix64 (Steele, Lea & Flood 2014).
GAMMA = np.uint64(0x9E3779B97F4A7C15)
#: A word holds the signs of so many draws.
WORD_BITS = 64


def hash_group_ids(seed: int, ids: Sequence[str]) -> NDArray[np.uint64]:
    """(G,): one 64-bit key for each group id.

    Raises:
        ConfigError: ``seed`` is below 0.
    """
    if seed < 0:
        raise ConfigError(f"seed: must be 0 or more, not {seed}")
    start = hashlib.blake2b(f"{seed}\0".encode(), digest_size=8)
    keys = np.empty(len(ids), dtype=np.uint64)
    for i, name in enumerate(ids):
        state = start.copy()
        state.update(name.encode("utf-8", "surrogatepass"))
        keys[i] = int.from_bytes(state.digest(), "little")
    return keys


def draw_flips(keys: NDArray[np.uint64], start: int, stop: int) -> FloatArray:
    """Whether each group keeps its sign in each draw.

    Args:
        keys: Shape (G,), from :func:`hash_group_ids`.
        start: The first draw.
        stop: Behind the last draw.

    Returns:
        Shape (G, stop − start): 1 = keeps its sign, 0 = is flipped.
    """
    check_wanted()
    first = start // WORD_BITS
    blocks = np.arange(first, -(-stop // WORD_BITS), dtype=np.uint64)
    words = mix_words(keys[:, None] + (blocks + np.uint64(1)) * GAMMA)
    octets = words.astype("<u8", copy=False).view(np.uint8)
    offset = start - first * WORD_BITS
    bits = np.unpackbits(octets, axis=1, count=offset + stop - start, bitorder="little")
    return bits[:, offset:].astype(np.float64)
