"""Limits: concurrent calls, calls per minute, total cost."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fusion_bench.errors import CostLimitError
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


class Budget:
    """Cost so far, cost reserved for running calls, and a limit of both.

    Args:
        limit: Highest total cost; None = no limit.
        spent: Cost of earlier runs.
    """

    def __init__(self, limit: float | None = None, spent: float = 0.0) -> None:
        self._limit = limit
        self._reserved = 0.0
        self.spent = spent

    def reserve_cost(self, estimate: float) -> None:
        """Reserve the estimated cost of a call before it is made.

        Raises:
            CostLimitError: The total could exceed the limit.
        """
        planned = self.spent + self._reserved + estimate
        if self._limit is not None and not planned <= self._limit:  # nor if either is NaN
            raise CostLimitError(
                f"the next call could raise the cost to {planned:.4f}, and the limit is "
                f"{self._limit:g} ({self.spent:.4f} spent): scores are stored; raise --max-cost "
                "and run the same command again to resume"
            )
        self._reserved += estimate

    def settle_cost(self, estimate: float, booked: float) -> None:
        """Replace a reserved estimate by the cost that is booked."""
        self._reserved -= estimate
        self.spent += booked
