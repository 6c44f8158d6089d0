"""JSON objects in which a key stands twice; Python alone would keep the last of the two values."""

from __future__ import annotations

from typing import Any

from fusion_bench.errors import DataError


def refuse_repeated_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """The object of these keys, for ``json.loads(…, object_pairs_hook=refuse_repeated_keys)``.

    Raises:
        DataError: A key stands twice, such as a query, or a document within one.
    """
    value = dict(pairs)
    if len(value) < len(pairs):
        keys = [key for key, _ in pairs]
        repeated = next(key for key in value if keys.count(key) > 1)
        raise DataError(f"the key {repeated!r} stands twice in one object: keep one")
    return value
