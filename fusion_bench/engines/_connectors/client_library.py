"""Calls of an engine's own client library, which blocks."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final, TypeVar

from fusion_bench.connector import call_in_thread
from fusion_bench.errors import FusionBenchError, ProviderError

T = TypeVar("T")

#: Characters of a library's error that are shown.
LONGEST_MESSAGE: Final = 300


async def call_library(title: str, question: Callable[[], T], timeout: float) -> T:
    """Call a blocking function of a library in a thread.

    Args:
        title: The engine's name, for errors.
        question: What is called.
        timeout: Seconds after which its answer is no longer waited for.

    Raises:
        ProviderError: It took too long (kind ``timeout``), or raised (kind ``refused``).
    """
    try:
        with wrap_errors(title):
            return await asyncio.wait_for(call_in_thread(question), timeout)
    except TimeoutError:
        raise ProviderError(
            f"{title}: no answer within {timeout:g} seconds", kind="timeout"
        ) from None


@contextmanager
def wrap_errors(title: str) -> Iterator[None]:
    """Turn whatever a library raises into an error of one line.

    Raises:
        ProviderError: Kind ``refused``; a timeout and our own errors pass.
    """
    try:
        yield
    except (FusionBenchError, TimeoutError):
        raise
    except Exception as error:  # noqa: BLE001 - a library may raise anything
        text = " ".join(str(error).split())[:LONGEST_MESSAGE] or type(error).__name__
        raise ProviderError(f"{title}: {text}", kind="refused") from None
