"""A random sample of queries that grows: more queries from the same seed keep the earlier ones."""

from __future__ import annotations

import hashlib
from collections.abc import Collection

from fusion_bench.errors import ConfigError


def draw_queries(queries: Collection[str], count: int, *, seed: int = 0) -> tuple[str, ...]:
    """Draw queries at random, without replacement.

    The queries are sorted by a SHA-256 of seed and id, and the first ones are drawn. So each set of
    ``count`` queries is as likely, whatever the order of ``queries``, and a larger ``count`` adds
    queries to those that a smaller one drew.

    Args:
        queries: Their ids, each once.
        count: How many to draw.
        seed: Another one draws another sample.

    Raises:
        ConfigError: There are not so many queries, or fewer than one is asked for.

    >>> draw_queries(["q1", "q2", "q3", "q4"], 2, seed=1)
    ('q4', 'q2')
    >>> draw_queries(["q1", "q2", "q3", "q4"], 3, seed=1)
    ('q4', 'q2', 'q1')
    """
    if not 1 <= count <= len(queries):
        raise ConfigError(
            f"a sample of {count} queries: from 1 to {len(queries)}, which is how many there are"
        )

    def sort_key(query: str) -> tuple[bytes, str]:
        return hashlib.sha256(f"{seed}\0{query}".encode()).digest(), query

    return tuple(sorted(queries, key=sort_key)[:count])
