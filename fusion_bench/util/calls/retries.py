"""Calls that are repeated while a service is busy or down."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final, TypeVar

from fusion_bench.errors import FailureKind, ProviderError
from fusion_bench.util.optional_imports import import_optional

T = TypeVar("T")

#: Failures after which a call is repeated.
REPEATED: Final[frozenset[FailureKind]] = frozenset({"rate_limit", "connection", "server"})


@dataclass(frozen=True)
class RetryRules:
    """When a call is repeated.

    Attributes:
        attempts: Most calls in all.
        wait_initial: Seconds before the second call; each further wait doubles, plus jitter.
        wait_max: Longest wait; a server that asks for more is not called again.
        wait_jitter: Most random seconds added to each wait.
        failure_kinds: Failures after which a call is repeated.
    """

    attempts: int = 5
    wait_initial: float = 1.0
    wait_max: float = 60.0
    wait_jitter: float = 1.0
    failure_kinds: frozenset[FailureKind] = REPEATED


async def call_with_retries(call: Callable[[], Awaitable[T]], rules: RetryRules) -> T:
    """The result of a call, repeated while it fails in a way that may pass.

    Args:
        call: Makes one call.
        rules: When it is repeated.

    Raises:
        ProviderError: The last call failed.
    """

    def retry_delay(error: Exception) -> bool | float:
        """Whether to call again, or the seconds to wait if the server named them."""
        if not isinstance(error, ProviderError) or error.kind not in rules.failure_kinds:
            return False
        if error.retry_after is None:
            return True
        return False if error.retry_after > rules.wait_max else error.retry_after

    try:
        return await call()
    except ProviderError as error:
        if rules.attempts == 1 or retry_delay(error) is False:
            raise
        failure: ProviderError | None = error
    stamina = import_optional("stamina", extra="remote", purpose="retrying")
    # Without a handler each retry would print its event's bare name.
    logging.getLogger("stamina").addHandler(logging.NullHandler())
    async for attempt in stamina.retry_context(
        on=retry_delay,
        timeout=None,
        attempts=rules.attempts,
        wait_initial=rules.wait_initial,
        wait_max=rules.wait_max,
        wait_jitter=rules.wait_jitter,
    ):
        with attempt:
            if failure is not None:  # the first call, which needed no library
                first, failure = failure, None
                raise first
            result = await call()
    return result
