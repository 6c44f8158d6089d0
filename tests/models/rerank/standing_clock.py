"""A clock that stands still until a test moves it: limits of time that no stall can reach."""

import asyncio
import threading
from contextlib import suppress
from weakref import WeakSet

import pytest

from fusion_bench.models import provider_session
from fusion_bench.serving.live import pipeline, rerankers


class StandingClock:
    """The time of every event loop, and of the modules that measure a deadline."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._now = 0.0
        self._lock = threading.Lock()
        self._loops: WeakSet[asyncio.AbstractEventLoop] = WeakSet()

        def read_time(loop: asyncio.AbstractEventLoop) -> float:
            with self._lock:
                self._loops.add(loop)
            return self._now

        monkeypatch.setattr(asyncio.BaseEventLoop, "time", read_time)
        for module in (provider_session, pipeline, rerankers):
            monkeypatch.setattr(module, "time", self)

    def monotonic(self) -> float:
        return self._now

    def advance(self, seconds: float) -> None:
        """Let time pass, and wake the loops that wait for it; from any thread."""
        with self._lock:
            self._now += seconds
            loops = list(self._loops)
        for loop in loops:
            with suppress(RuntimeError):  # it is closed
                loop.call_soon_threadsafe(int)

    def hang(self, _number: int) -> str:
        """A request that is never answered; an hour passes when it is at the server."""
        self.advance(3600)
        return "hang"
