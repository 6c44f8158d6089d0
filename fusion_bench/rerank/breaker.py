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
from dataclasses import dataclass, replace
from typing import Annotated, Literal, TypeAlias

from pydantic import Field

from fusion_bench.config.models import StrictModel

BreakerPhase: TypeAlias = Literal["closed", "open", "half_open"]


class BreakerRules(StrictModel):
    """When the breaker opens and closes.

    Attributes:
        failures: Failures in a row that open it.
        open_seconds: How long no call is admitted.
        half_open_calls: Calls that are then admitted; it closes when all succeed.
    """

    failures: Annotated[int, Field(ge=1)] = 5
    open_seconds: Annotated[float, Field(gt=0)] = 30.0
    half_open_calls: Annotated[int, Field(ge=1)] = 3


@dataclass(frozen=True)
class BreakerState:
    """State of a circuit breaker.

    Attributes:
        phase: Closed, open or half-open.
        failures: In a row, while closed.
        opened_at: When it opened last, in seconds of the clock.
        admitted: Calls admitted while half-open, without abandoned ones.
        succeeded: How many of those have succeeded.
        epoch: Changes of phase so far; the ticket of a call is the epoch that admitted it.
    """

    phase: BreakerPhase = "closed"
    failures: int = 0
    opened_at: float = 0.0
    admitted: int = 0
    succeeded: int = 0
    epoch: int = 0

    def _enter_phase(self, phase: BreakerPhase, now: float = 0.0) -> BreakerState:
        return BreakerState(phase, opened_at=now, epoch=self.epoch + 1)

    def admit_call(self, rules: BreakerRules, now: float) -> tuple[BreakerState, int | None]:
        """The state after a request to call, and the ticket; None = refused."""
        state = self
        if state.phase == "open" and now - state.opened_at >= rules.open_seconds:
            state = state._enter_phase("half_open")
        if state.phase == "closed":
            return state, state.epoch
        if state.phase == "half_open" and state.admitted < rules.half_open_calls:
            return replace(state, admitted=state.admitted + 1), state.epoch
        return state, None

    def record_success(self, rules: BreakerRules, ticket: int) -> BreakerState:
        """The state after a call succeeded."""
        if ticket != self.epoch or self.phase == "open":
            return self
        if self.phase == "closed":
            return replace(self, failures=0)
        done = self.succeeded + 1
        return (
            self._enter_phase("closed")
            if done >= rules.half_open_calls
            else replace(self, succeeded=done)
        )

    def record_failure(self, rules: BreakerRules, ticket: int, now: float) -> BreakerState:
        """The state after a call failed."""
        if ticket != self.epoch or self.phase == "open":
            return self
        failures = self.failures + 1
        if self.phase == "half_open" or failures >= rules.failures:
            return self._enter_phase("open", now)
        return replace(self, failures=failures)

    def abandon_call(self, ticket: int) -> BreakerState:
        """The state after a call ended without a result, such as a cancelled one."""
        if ticket != self.epoch or self.phase != "half_open":
            return self
        return replace(self, admitted=self.admitted - 1)


class CircuitBreaker:
    """A breaker's state with its clock.

    Args:
        rules: When it opens and closes.
        clock: Monotonic clock in seconds.
    """

    def __init__(self, rules: BreakerRules, clock: Callable[[], float]) -> None:
        self._rules, self._clock = rules, clock
        self.state = BreakerState()

    def admit_call(self) -> int | None:
        """A ticket for one call; None = do not call."""
        self.state, ticket = self.state.admit_call(self._rules, self._clock())
        return ticket

    def record_success(self, ticket: int) -> None:
        """The call succeeded."""
        self.state = self.state.record_success(self._rules, ticket)

    def record_failure(self, ticket: int) -> None:
        """The call failed."""
        self.state = self.state.record_failure(self._rules, ticket, self._clock())

    def abandon_call(self, ticket: int) -> None:
        """The call ended without a result."""
        self.state = self.state.abandon_call(ticket)
