"""The circuit breaker: a provider that keeps failing is left alone for a while.

The rules (nablarch's reranking design):

- closed: calls pass; the fifth failure in a row opens it, a success starts the count again.
- open: no call passes for 30 seconds.
- half-open: after that, at most three calls pass. When all three have succeeded it closes; at the
  first failure it opens again, for another 30 seconds.
- The result of a call that was let through before the last change of state counts for nothing.

No library was taken: pybreaker, circuitbreaker and purgatory let any number of calls through
half-open and cannot be given a clock, so that neither the third rule nor a simulation is possible.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Annotated, Literal, TypeAlias

from pydantic import Field

from fusion_bench.config.models import StrictModel

__all__ = ["BreakerPhase", "BreakerRules", "BreakerState", "CircuitBreaker"]

BreakerPhase: TypeAlias = Literal["closed", "open", "half_open"]


class BreakerRules(StrictModel):
    """When it opens and closes.

    Attributes:
        failures: So many in a row open it.
        open_seconds: So long nobody is let through.
        half_open_calls: So many are let through then, and all have to succeed.
    """

    failures: Annotated[int, Field(ge=1)] = 5
    open_seconds: Annotated[float, Field(gt=0)] = 30.0
    half_open_calls: Annotated[int, Field(ge=1)] = 3


@dataclass(frozen=True)
class BreakerState:
    """Where a breaker stands.

    Attributes:
        phase: Closed, open or half-open.
        failures: In a row, while closed.
        opened_at: When it opened last, in seconds of the clock in use.
        admitted: Calls let through since it is half-open and not given back.
        succeeded: How many of those have succeeded.
        epoch: Changes of phase so far; a call's ticket is the epoch it was let through in.
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
        """The state after somebody asked to call, and the ticket; None = refused."""
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
        """The state after a call ended without saying anything of the provider."""
        if ticket != self.epoch or self.phase != "half_open":
            return self
        return replace(self, admitted=self.admitted - 1)


class CircuitBreaker:
    """A state and the clock it lives by.

    Args:
        rules: When it opens and closes.
        clock: Seconds, never going back.
    """

    def __init__(self, rules: BreakerRules, clock: Callable[[], float]) -> None:
        self._rules, self._clock = rules, clock
        self.state = BreakerState()

    def admit_call(self) -> int | None:
        """A ticket for one call; None = leave the provider alone."""
        self.state, ticket = self.state.admit_call(self._rules, self._clock())
        return ticket

    def record_success(self, ticket: int) -> None:
        """The call succeeded."""
        self.state = self.state.record_success(self._rules, ticket)

    def record_failure(self, ticket: int) -> None:
        """The call failed."""
        self.state = self.state.record_failure(self._rules, ticket, self._clock())

    def abandon_call(self, ticket: int) -> None:
        """The call ended without saying anything of the provider."""
        self.state = self.state.abandon_call(ticket)
