"""Work that runs an event loop of its own, also within another one, as a notebook has."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")


def outside_event_loop(work: Callable[[], T]) -> T:
    """The result of work that runs an event loop of its own, also from within another."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:  # no loop runs here
        return work()
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(work).result()
