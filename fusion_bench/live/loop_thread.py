"""An event loop in a thread of its own, for callers without one."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any, TypeVar

T = TypeVar("T")


class LoopThread:
    """Runs coroutines for any thread, one loop for all of them."""

    def __init__(self) -> None:
        self._loop, self._is_closed = asyncio.new_event_loop(), False
        self._thread = threading.Thread(
            target=self._run_loop, name="fusion_bench.live", daemon=True
        )
        self._thread.start()

    def _run_loop(self) -> None:
        """Run the loop until it is closed: a task that exits ends neither it nor other tasks."""
        while not self._is_closed:
            with suppress(SystemExit, KeyboardInterrupt):
                self._loop.run_forever()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """The result of a coroutine; waits for it, and cancels it at Ctrl-C."""
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result()
        finally:
            future.cancel()  # without effect on what has ended

    def close(self) -> None:
        """End the loop and its thread."""
        self.run(self._loop.shutdown_default_executor())
        self._is_closed = True
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
