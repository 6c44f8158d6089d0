"""Clients of rerankers, one file per API; :data:`providers` finds them by name."""

from fusion_bench.rerank.clients._base import (
    ConnectedProvider,
    HttpProvider,
    Price,
    Provider,
    providers,
)

__all__ = ["ConnectedProvider", "HttpProvider", "Price", "Provider", "providers"]
