"""How a provider is connected before the first query, and what becomes of one that cannot be."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from typing import Final

from fusion_bench.errors import ProviderError
from fusion_bench.rerank.clients import Provider
from fusion_bench.rerank.protocol import Reply, Reranker

#: Share of the time limit of a call within which a provider is connected during that call.
CONNECTING_SHARE: Final = 0.5


async def connect_provider(
    provider: Provider, seconds: float | None, stack: AsyncExitStack
) -> Reranker:
    """Connect a provider within a time.

    Args:
        provider: The provider.
        seconds: The time limit, as some servers are asked for their model; None = none.
        stack: Releases the connection.

    Raises:
        ProviderError: It cannot be connected: kind ``refused`` or ``connection``. The call that
            tried is not repeated.
        ConfigError: A key is missing.
        MissingExtraError: A library is.
    """
    try:
        async with asyncio.timeout(seconds):
            return await stack.enter_async_context(provider.open_reranker())
    except TimeoutError:
        limit = 1e3 * (seconds or 0.0)
        reason = f"{provider.model_identity.label}: not connected within {limit:.0f} ms"
    except ProviderError as error:
        if error.kind == "refused":
            raise
        reason = str(error)
    raise ProviderError(reason, kind="connection", retry_after=math.inf, is_billable=False)


class LateReranker:
    """A provider that could not be connected before the first query; its calls try again.

    Args:
        provider: The provider.
        seconds: Time limit of a call.
        stack: Releases the connection.
    """

    def __init__(self, provider: Provider, seconds: float, stack: AsyncExitStack) -> None:
        self.identity, self.batch = provider.model_identity, provider.batch
        self._provider, self._stack = provider, stack
        self._seconds = CONNECTING_SHARE * seconds
        self._opened: Reranker | None = None
        self._lock = asyncio.Lock()  # or each of the calls at once would connect

    async def score(self, query: str, documents: Sequence[str]) -> Reply:
        """Connect, then score.

        Raises:
            ProviderError: It cannot be connected, or the call failed.
        """
        async with self._lock:
            if self._opened is None:
                self._opened = await connect_provider(self._provider, self._seconds, self._stack)
                self.batch = self._opened.batch
        reply = await self._opened.score(query, documents)
        return replace(reply, model=reply.model or self._opened.identity.model)
