"""The circuit breaker: it stops calls to a provider that keeps failing.

- Closed: calls pass. The fifth failure in a row opens it; a success resets the count.
- Open: no call passes for 30 seconds.
- Half-open: after that, at most three calls pass. It closes when all three have succeeded and
  opens again at the first failure.
- The result of a call that was admitted before the last change of phase is ignored.

Of the libraries, pybreaker, circuitbreaker and purgatory admit any number of calls half-open and
take no clock, which the third rule and the simulation need.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, TypeAlias

from fusion_bench.rerank.settings import BreakerRules

BreakerPhase: TypeAlias = Literal["closed", "open", "half_open"]


class CircuitBreaker:
    """A circuit breaker with its clock.

    The ticket of a call is the number of the phase that admitted it.

    Args:
        rules: When it opens and closes.
        clock: Monotonic clock in seconds.
    """

    def __init__(self, rules: BreakerRules, clock: Callable[[], float]) -> None:
        self._rules, self._clock, self._phases = rules, clock, 0
        self._enter_phase("closed")

    def _enter_phase(self, phase: BreakerPhase) -> None:
        self.phase, self._since = phase, self._clock()
        self._phases += 1
        self._admitted = self._failures = self._successes = 0

    def admit_call(self) -> int | None:
        """A ticket for one call; None = do not call."""
        rules = self._rules
        if self.phase == "open" and self._clock() - self._since >= rules.open_seconds:
            self._enter_phase("half_open")
        is_full = self.phase == "half_open" and self._admitted >= rules.half_open_calls
        if is_full or self.phase == "open":
            return None
        self._admitted += 1
        return self._phases

    def open_now(self) -> None:
        """Stop calls to a provider of which it is known that it does not answer."""
        self._enter_phase("open")

    def record_success(self, ticket: int) -> None:
        """The call succeeded."""
        if ticket == self._phases:
            self._failures = 0
            self._successes += 1
            if self.phase == "half_open" and self._successes >= self._rules.half_open_calls:
                self._enter_phase("closed")

    def record_failure(self, ticket: int) -> None:
        """The call failed."""
        if ticket == self._phases:
            self._failures += 1
            if self.phase == "half_open" or self._failures >= self._rules.failures:
                self._enter_phase("open")

    def abandon_call(self, ticket: int) -> None:
        """The call ended without a result, such as a cancelled one."""
        if ticket == self._phases:
            self._admitted -= 1
