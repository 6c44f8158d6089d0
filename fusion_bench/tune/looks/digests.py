"""Digests of what a look is about: the held-out queries, and the numbers that it tests."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from fusion_bench.data.ordering import FloatArray

#: Hexadecimal digits of the digest of a query and of the numbers.
QUERY_DIGITS, NUMBERS_DIGITS = 12, 32
#: Decimals to which the values of one look must agree with those of another to be the same.
DECIMALS = 9


def query_digests(queries: Iterable[str]) -> tuple[str, ...]:
    """A digest of each query id, sorted: 48 bits of its SHA-256."""
    return tuple(
        sorted(hashlib.sha256(query.encode()).hexdigest()[:QUERY_DIGITS] for query in queries)
    )


def numbers_digest(
    measure: str,
    numbers: Mapping[str, object],
    queries: Sequence[str],
    default: FloatArray,
    tuned: FloatArray,
) -> str:
    """Digest of what a look asks about: other values, as of other judgments, are another question.

    Args:
        measure: What is compared.
        numbers: All that was chosen, as JSON has it.
        queries: Ids of the held-out queries, shape (H,), in any order.
        default: Shape (H,), the values of the default.
        tuned: Shape (H,), the values of the chosen numbers.
    """
    before, after = (np.round(values, DECIMALS) + 0.0 for values in (default, tuned))
    values = sorted(zip(queries, before.tolist(), after.tolist(), strict=True))
    text = json.dumps([measure, numbers, values], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:NUMBERS_DIGITS]
