"""Limits of calls: how many at once, and how many a minute."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fusion_bench.util.optional_imports import import_optional

MINUTE = 60.0


class RateLimiter:
    """Limits concurrent calls and calls per minute.

    Calls are spaced evenly, so that no window of a minute holds more, wherever it begins.

    Args:
        concurrency: Concurrent calls.
        requests_per_minute: Calls per minute; None = no limit.

    Raises:
        MissingExtraError: ``requests_per_minute`` is given, and aiolimiter is not installed.
    """

    def __init__(self, concurrency: int, requests_per_minute: float | None) -> None:
        self._places = asyncio.Semaphore(concurrency)
        self._spacing = None
        if requests_per_minute is not None:
            aiolimiter = import_optional(
                "aiolimiter", extra="remote", purpose="requests_per_minute"
            )
            self._spacing = aiolimiter.AsyncLimiter(1, MINUTE / requests_per_minute)

    @asynccontextmanager
    async def acquire_slot(self) -> AsyncIterator[None]:
        """Wait until a call may start, and hold its slot."""
        async with self._places:
            await self.wait_for_spacing()
            yield

    async def wait_for_spacing(self) -> None:
        """Wait until another request may be sent from a slot that is held."""
        if self._spacing is not None:
            await self._spacing.acquire()
