"""Clients of rerankers, one file per API; :data:`providers` finds them by name."""

from fusion_bench.rerank.clients._base import (
    HttpProvider,
    Price,
    Provider,
    integer_at,
    mapping_at,
    providers,
    text_at,
)

__all__ = [
    "HttpProvider",
    "Price",
    "Provider",
    "integer_at",
    "mapping_at",
    "providers",
    "text_at",
]
