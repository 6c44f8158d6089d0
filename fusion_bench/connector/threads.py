"""Blocking calls in threads that nobody has to wait for."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import threading
from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")


async def call_in_thread(function: Callable[..., T], *given: Any, **options: Any) -> T:  # noqa: ANN401 - of the function
    """What a blocking function returns, from a daemon thread of its own.

    Other than with ``asyncio.to_thread``, a call that never returns keeps neither the event loop
    nor the process from ending.

    Raises:
        Exception: Whatever the function raises.
    """
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()
    context = contextvars.copy_context()

    def report(settle: Callable[[Any], None], value: object) -> None:
        if not future.done():  # it may have been canceled meanwhile
            settle(value)

    def work() -> None:
        try:
            result = context.run(function, *given, **options)
        except BaseException as error:  # noqa: BLE001 - the caller gets it
            settled: tuple[Callable[[Any], None], object] = (future.set_exception, error)
        else:
            settled = (future.set_result, result)
        with contextlib.suppress(RuntimeError):  # the loop has ended
            loop.call_soon_threadsafe(report, *settled)

    threading.Thread(target=work, daemon=True).start()
    return await future
