"""Calls of services or users' code: how many at once, how often repeated, never blocking.

An event loop ends at a ``SystemExit`` or a ``KeyboardInterrupt`` of a task, and a future refuses a
``StopIteration``: whoever waits for it then waits without end.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import inspect
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from fusion_bench.util.optional_imports import import_optional

MINUTE = 60.0


class RateLimiter:
    """Limits concurrent calls and calls per minute.

    Calls are spaced evenly, so that no window of a minute holds more, wherever it begins.

    Args:
        concurrency: Concurrent calls.
        requests_per_minute: Calls per minute; None = no limit.

    Raises:
        MissingExtraError: ``requests_per_minute`` is given, and aiolimiter is not installed.
    """

    def __init__(self, concurrency: int, requests_per_minute: float | None) -> None:
        self._places = asyncio.Semaphore(concurrency)
        self._spacing = None
        if requests_per_minute is not None:
            aiolimiter = import_optional(
                "aiolimiter", extra="remote", purpose="requests_per_minute"
            )
            self._spacing = aiolimiter.AsyncLimiter(1, MINUTE / requests_per_minute)

    @asynccontextmanager
    async def acquire_slot(self) -> AsyncIterator[None]:
        """Wait until a call may start, and hold its slot."""
        async with self._places:
            await self.wait_for_spacing()
            yield

    async def wait_for_spacing(self) -> None:
        """Wait until another request may be sent from a slot that is held."""
        if self._spacing is not None:
            await self._spacing.acquire()


T = TypeVar("T")


async def call_in_thread(function: Callable[..., T], *given: Any, **options: Any) -> T:  # noqa: ANN401 - of the function
    """What a blocking function returns, from a daemon thread of its own.

    Other than with ``asyncio.to_thread``, a call that never returns keeps neither the event loop
    nor the process from ending.

    Raises:
        Exception: What the function raises; see :func:`contain_error`.
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
            settled: tuple[Callable[[Any], None], object] = (
                future.set_exception,
                contain_error(error),
            )
        else:
            settled = (future.set_result, result)
        with contextlib.suppress(RuntimeError):  # the loop has ended
            loop.call_soon_threadsafe(report, *settled)

    threading.Thread(target=work, daemon=True).start()
    return await future


async def call_function(function: Callable[..., Any], *given: Any, **options: Any) -> Any:  # noqa: ANN401 - the user's own
    """What a function or an object returns: one that is no coroutine function runs in a thread.

    Raises:
        Exception: What it raises; see :func:`contain_error`.
    """
    called = getattr(function, "__call__", function)  # noqa: B004 - an object may be one
    if inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(called):
        return await await_contained(function(*given, **options))
    answer = await call_in_thread(function, *given, **options)
    return await await_contained(answer) if inspect.isawaitable(answer) else answer


async def await_contained(work: Awaitable[T]) -> T:
    """What an awaitable returns.

    The cancellation of the task that waits goes through, and so does a ``KeyboardInterrupt`` in
    the main thread, where it is Ctrl-C.

    Raises:
        Exception: What it raises; see :func:`contain_error`.
    """
    try:
        return await work
    except BaseException as error:
        contained = contain_error(error)
        is_main = threading.current_thread() is threading.main_thread()
        is_for_waiter = isinstance(error, KeyboardInterrupt) and is_main
        if isinstance(error, asyncio.CancelledError):
            task = asyncio.current_task()
            is_for_waiter = task is None or task.cancelling() > 0
        if contained is error or is_for_waiter:
            raise
        raise contained from error


def contain_error(error: BaseException) -> Exception:
    """The error, or a ``RuntimeError`` that names it where a task cannot hold it."""
    if isinstance(error, Exception) and not isinstance(error, StopIteration):
        return error
    return RuntimeError(f"the call raised {error!r}")
