"""How fast and how much: calls at once, calls a minute, money in all."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fusion_bench.errors import CostLimitError
from fusion_bench.util.optional_imports import import_optional

__all__ = ["Budget", "RateLimiter"]

MINUTE = 60.0


class RateLimiter:
    """At most so many calls at once, and so many a minute.

    Calls are spaced evenly: a burst at the start of a minute and another at its end would be
    counted together by a provider whose minutes begin elsewhere.

    Args:
        concurrency: Calls at once.
        requests_per_minute: Calls a minute; None = no limit.

    Raises:
        MissingExtraError: There is such a limit, and aiolimiter is not installed.
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
        """Wait for one's turn and hold a place."""
        async with self._places:
            await self.wait_for_spacing()
            yield

    async def wait_for_spacing(self) -> None:
        """Wait until one more request may be sent, by whoever holds a place already."""
        if self._spacing is not None:
            await self._spacing.acquire()


class Budget:
    """Money: what was spent, what running calls may cost, and where to stop.

    Args:
        limit: Not more than this in all; None = no limit.
        spent: What was spent before.
    """

    def __init__(self, limit: float | None = None, spent: float = 0.0) -> None:
        self._limit = limit
        self._reserved = 0.0
        self.spent = spent

    def reserve_cost(self, estimate: float) -> None:
        """Set aside what a call may cost, before it is made.

        Raises:
            CostLimitError: It would go beyond the limit.
        """
        planned = self.spent + self._reserved + estimate
        if self._limit is not None and planned > self._limit:
            raise CostLimitError(
                f"the next call could bring the price to {planned:.4f}, and at most "
                f"{self._limit:g} is allowed ({self.spent:.4f} spent): what was scored is kept; "
                "raise --max-cost and run the same command again to go on"
            )
        self._reserved += estimate

    def settle_cost(self, estimate: float, actual: float) -> None:
        """Replace what was set aside by what it did cost."""
        self._reserved -= estimate
        self.spent += actual
