"""Digests of what a look is about: the held-out queries, and the numbers that it tests."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from fusion_bench.data.ordering import FloatArray
from fusion_bench.data.qrels import Qrels

#: Hexadecimal digits of the digest of a query and of the numbers.
QUERY_DIGITS, NUMBERS_DIGITS = 12, 32
#: Decimals to which the values of one look must agree with those of another to be the same.
DECIMALS = 9


def query_digests(queries: Iterable[str]) -> tuple[str, ...]:
    """A digest of each query id, sorted: 48 bits of its SHA-256."""
    return tuple(
        sorted(hashlib.sha256(query.encode()).hexdigest()[:QUERY_DIGITS] for query in queries)
    )


def judgment_digests(qrels: Qrels | None, queries: Iterable[str]) -> tuple[str, ...]:
    """A digest of the relevant documents and their grades of each query, sorted.

    It stays the same where a query gets another id, or further documents without relevance. What
    several queries have in common tells none of them, and is left out.
    """
    judged = {} if qrels is None else qrels.to_dict()
    texts = {
        query: json.dumps(sorted(item for item in grades.items() if item[1] > 0))
        for query, grades in judged.items()
    }
    counts = Counter(texts.values())
    return query_digests(texts[query] for query in queries if counts[texts.get(query, "")] == 1)


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
