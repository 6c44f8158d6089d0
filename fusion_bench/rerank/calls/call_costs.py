"""What calls cost: reserved before each of them, and booked after it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from fusion_bench.errors import ProviderError
from fusion_bench.rerank.calls.limits import Budget
from fusion_bench.rerank.clients import Price, Provider
from fusion_bench.rerank.protocol import Reply, Usage
from fusion_bench.rerank.recent_scores import RecentScores
from fusion_bench.rerank.store import ScoreStore


@dataclass
class Call:
    """One call under way.

    Attributes:
        counted: Its usage by the client's count.
        reserved: The cost of that.
        reply: Set when the call has succeeded.
    """

    counted: Usage
    reserved: float
    reply: Reply | None = None


class CallCosts:
    """The costs of one provider's calls.

    The client counts what each call should be billed. No call is booked at less: a server may bill
    nothing, or a negative number, and ``--max-cost`` must hold.

    Args:
        provider: Its price, and its count of usage.
        budget: Limit of the total cost.
        store: Where calls that failed and may be billed are recorded.
        run: Key of the run in the store.
    """

    def __init__(
        self, provider: Provider, budget: Budget, store: ScoreStore | RecentScores, run: str
    ) -> None:
        self._provider, self._budget, self._store, self._run = provider, budget, store, run
        self._price = provider.price or Price()

    @contextmanager
    def reserve(self, query: str, texts: Sequence[str]) -> Iterator[Call]:
        """Reserve the cost of one call while it is made.

        Raises:
            CostLimitError: The total could exceed the limit.
        """
        call = Call(Usage(), 0.0)
        if self._provider.price is not None:
            call.counted = self._provider.estimate_usage(query, texts)
            call.reserved = self._price.cost_of(call.counted)
        self._budget.reserve_cost(call.reserved)
        booked = call.reserved  # a call that was cut off is usually billed
        try:
            yield call
            booked = self._booked_cost(call)
        except ProviderError as error:
            booked = call.reserved if error.is_billable else 0.0
            raise
        finally:
            self._budget.settle_cost(call.reserved, booked)
            if call.reply is None and booked:
                self._store.record_event(self._run, {"kind": "unanswered", "booked": booked})

    def describe_call(self, call: Call) -> Mapping[str, Any]:
        """Usage and cost of a call that succeeded, as its event holds them."""
        usage = self._complete_usage(call)
        cost = None if self._provider.price is None else self._price.cost_of(usage)
        return {
            "searches": usage.searches,
            "tokens": usage.tokens,
            "output_tokens": usage.output_tokens,
            "cost": cost,
            "booked": self._booked_cost(call),
        }

    def _booked_cost(self, call: Call) -> float:
        return max(call.reserved, self._price.cost_of(self._complete_usage(call)))

    def _complete_usage(self, call: Call) -> Usage:
        """What the server bills; the client's count where it bills nothing and has a price."""
        billed = Usage() if call.reply is None else call.reply.usage
        if not call.reserved:
            return billed
        return Usage(
            max(0, billed.searches) or call.counted.searches,
            max(0, billed.tokens) or call.counted.tokens,
            max(0, billed.output_tokens) or call.counted.output_tokens,
        )
