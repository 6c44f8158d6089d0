"""Clients of rerankers; :data:`providers` finds them by name."""

from fusion_bench.models.rerankers._base import (
    ChatProvider,
    ConnectedProvider,
    HttpProvider,
    Price,
    Provider,
    providers,
)

__all__ = ["ChatProvider", "ConnectedProvider", "HttpProvider", "Price", "Provider", "providers"]
