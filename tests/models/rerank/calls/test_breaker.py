"""The circuit breaker against its written rules."""

from __future__ import annotations

from collections import deque

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, multiple, rule

from fusion_bench.models.call_limits import CircuitBreaker
from fusion_bench.models.rerank_config import BreakerRules

RULES = BreakerRules()


class Written(RuleBasedStateMachine):
    """The rules as they are written, kept as a log of what happened, beside the real breaker.

    The model has no state of its own but the log: what each rule says is looked up there.
    """

    calls = Bundle("calls")

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        self.breaker = CircuitBreaker(RULES, lambda: self.now)
        self.phase, self.since, self.period = "closed", 0.0, 0
        self.results: list[bool] = []  # of this period, by those let through in it
        self.out = 0  # let through in this period and not given back

    def turn(self, phase: str) -> None:
        self.phase, self.since, self.period = phase, self.now, self.period + 1
        self.results, self.out = [], 0

    @rule(seconds=st.sampled_from([0.0, 1.0, 29.0, 30.0, 31.0]))
    def wait(self, seconds: float) -> None:
        self.now += seconds

    @rule(target=calls)
    def call(self):  # type: ignore[no-untyped-def] # noqa: ANN201 - hypothesis' own type
        if self.phase == "open" and self.now - self.since >= 30:
            self.turn("half_open")
        passes = self.phase == "closed" or (self.phase == "half_open" and self.out < 3)
        ticket = self.breaker.admit_call()
        assert (ticket is not None) == passes
        if ticket is None:
            return multiple()
        self.out += 1
        return (ticket, self.period)

    @rule(call=consumes(calls))
    def succeed(self, call: tuple[int, int]) -> None:
        self.breaker.record_success(call[0])
        if call[1] != self.period:
            return
        self.results.append(True)
        if self.phase == "half_open" and self.results == [True] * 3:
            self.turn("closed")

    @rule(call=consumes(calls))
    def fail(self, call: tuple[int, int]) -> None:
        self.breaker.record_failure(call[0])
        if call[1] != self.period:
            return
        self.results.append(False)
        in_a_row = deque(self.results, maxlen=5)
        if self.phase == "half_open" or (len(in_a_row) == 5 and not any(in_a_row)):
            self.turn("open")

    @rule(call=consumes(calls))
    def abandon(self, call: tuple[int, int]) -> None:
        self.breaker.abandon_call(call[0])
        if call[1] == self.period:
            self.out -= 1

    @invariant()
    def same_phase(self) -> None:
        assert self.breaker.phase == self.phase


Written.TestCase.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
TestWritten = Written.TestCase


def phase(breaker: CircuitBreaker) -> str:
    return breaker.phase


def test_five_failures_thirty_seconds_three_calls() -> None:
    now = 0.0
    breaker = CircuitBreaker(RULES, lambda: now)
    for _ in range(4):
        breaker.record_failure(breaker.admit_call() or 0)
    assert phase(breaker) == "closed"
    breaker.record_failure(breaker.admit_call() or 0)
    assert breaker.admit_call() is None
    now = 29.999
    assert breaker.admit_call() is None
    now = 30.0
    tickets = [breaker.admit_call() for _ in range(4)]
    assert tickets[3] is None
    for ticket in tickets[:3]:
        assert phase(breaker) == "half_open"
        breaker.record_success(ticket or 0)
    assert phase(breaker) == "closed"


def test_late_results_of_an_earlier_state_count_for_nothing() -> None:
    now = 0.0
    breaker = CircuitBreaker(BreakerRules(failures=1, half_open_calls=1), lambda: now)
    late, first = breaker.admit_call() or 0, breaker.admit_call() or 0
    breaker.record_failure(first)
    now = 30.0
    trial = breaker.admit_call() or 0
    breaker.record_failure(late)
    assert phase(breaker) == "half_open"
    breaker.record_success(trial)
    assert phase(breaker) == "closed"
