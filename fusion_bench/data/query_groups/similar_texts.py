"""Texts that are equal or nearly so: normalized texts, shingles, MinHash.

A text is the set of its shingles, here all runs of three characters of the normalized text; two
texts are as similar as the Jaccard index of their sets. MinHash only proposes pairs, the index
itself decides (Broder 1997, "On the resemblance and containment of documents"; banding as in
Leskovec, Rajaraman & Ullman, "Mining of Massive Datasets", section 3.4).
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import Final

import numpy as np
from numpy.typing import NDArray

from fusion_bench.data.ordering import IntArray

#: Characters of a shingle.
SHINGLE: Final = 3
#: MinHash: bands, and rows of each. Of pairs of similarity .4 this misses 4 %, of .5 .2 %.
BANDS: Final = 48
ROWS: Final = 3
#: A band's value that more texts share is a phrase in common, not a copy.
MAX_BUCKET: Final = 200

_INCREMENT: Final = 0x9E3779B97F4A7C15


def normalize_text(text: str) -> str:
    """Lower case, compatible characters made equal (NFKC), all but letters and digits one blank."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    return " ".join("".join(c if c.isalnum() else " " for c in folded).split())


def jaccard_index(first: str, second: str) -> float:
    """Shared shingles ÷ all distinct shingles of two normalized texts."""
    shingles, others = (set(_shingle_texts([text])[0].tolist()) for text in (first, second))
    return len(shingles & others) / len(shingles | others)


def propose_pairs(texts: Sequence[str]) -> IntArray:
    """Pairs of texts that share a band of their MinHash signatures, shape (P, 2), each once.

    Args:
        texts: Normalized, none of them empty.
    """
    if len(texts) < 2:
        return np.empty((0, 2), dtype=np.int64)
    words, starts = _shingle_texts(texts)
    pairs: set[int] = set()
    for band in range(BANDS):
        signature = np.zeros(len(texts), dtype=np.uint64)
        for row in range(ROWS):
            seed = (band * ROWS + row + 1) * _INCREMENT % 2**64
            hashed = (words ^ np.uint64(seed)) * np.uint64(seed | 1)
            signature = _mix_words(signature ^ np.minimum.reduceat(hashed, starts))
        for bucket in _equal_values(signature):
            pairs.update(a * len(texts) + b for a, b in combinations(bucket, 2))
    codes = np.fromiter(pairs, dtype=np.int64, count=len(pairs))
    return np.stack(np.divmod(np.sort(codes), len(texts)), axis=1)


def _shingle_texts(texts: Sequence[str]) -> tuple[NDArray[np.uint64], IntArray]:
    """Hashes of the shingles of all texts, and where those of each text start.

    A blank stands before and after a text, so that one of a single character has a shingle.
    """
    sizes = np.array([len(text) for text in texts], dtype=np.int64)
    padded = "".join(f" {text} " for text in texts).encode("utf-32-le", "surrogatepass")
    codes = np.frombuffer(padded, dtype="<u4").astype(np.uint64)
    runs = codes[:-2] | codes[1:-1] << np.uint64(21) | codes[2:] << np.uint64(42)
    starts = np.concatenate([[0], np.cumsum(sizes + 2)[:-1]])
    is_inside = np.ones(len(runs), dtype=bool)
    for gap in (1, 2):  # the two runs that begin in one text and end in the next
        is_inside[starts[1:] - gap] = False
    return _mix_words(runs[is_inside]), np.concatenate([[0], np.cumsum(sizes)[:-1]])


def _equal_values(values: NDArray[np.uint64]) -> Iterator[list[int]]:
    """Indices of equal values, ascending, where at least two and not too many are equal."""
    order = np.argsort(values, kind="stable")
    heads = np.flatnonzero(np.diff(values[order], prepend=values[order[:1]] + np.uint64(1)) != 0)
    sizes = np.diff(heads, append=len(values))
    for i in np.flatnonzero((sizes > 1) & (sizes <= MAX_BUCKET)).tolist():
        yield order[heads[i] : heads[i] + sizes[i]].tolist()


def _mix_words(words: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """SplitMix64's finalizer (Steele, Lea & Flood 2014): every bit in depends on every bit out."""
    mixed = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(mixed ^ (mixed >> np.uint64(31)))
