"""The production profile allows 100 ms: only a test's own clock may use them up."""

import pytest

from tests.models.rerank.standing_clock import StandingClock


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> StandingClock:
    return StandingClock(monkeypatch)
