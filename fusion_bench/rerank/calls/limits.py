"""The limit of the total cost of calls."""

from __future__ import annotations

from fusion_bench.errors import CostLimitError


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
