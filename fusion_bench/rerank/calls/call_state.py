"""What is known of the calls for one query while they run, and how long a retry may wait."""

from __future__ import annotations

import asyncio
import random
from dataclasses import dataclass, field

from fusion_bench.errors import ProviderError
from fusion_bench.rerank.settings import RetryRules


@dataclass
class CallState:
    """The calls of one query to one provider.

    Attributes:
        label: ``provider/model``.
        until: Time of the event loop at which the deadline ends; None = never.
        is_sent: Whether any call has left.
        is_throttled: Whether the provider has asked to wait.
    """

    label: str
    until: float | None
    is_sent: bool = field(default=False, init=False)
    is_throttled: bool = field(default=False, init=False)

    def choose_wait(self, error: Exception, failed: int, rules: RetryRules) -> bool | float:
        """Seconds to wait before the next call; False = there is none.

        A wait that does not end before the deadline is not begun.

        Args:
            error: How the last call failed.
            failed: Calls that have failed, from 1.
            rules: When a call is repeated.
        """
        if not isinstance(error, ProviderError) or error.kind not in rules.failure_kinds:
            return False
        self.is_throttled |= error.kind == "rate_limit"
        wait = error.retry_after
        if wait is None:
            jitter = random.uniform(0, rules.wait_jitter)  # noqa: S311 - no secret
            wait = min(rules.wait_max, rules.wait_initial * 2.0 ** (failed - 1) + jitter)
        return wait if wait <= rules.wait_max and self._fits(wait) else False

    def _fits(self, seconds: float) -> bool:
        return self.until is None or asyncio.get_running_loop().time() + seconds < self.until

    def deadline_error(self, seconds: float) -> ProviderError:
        """The error of a deadline that has ended.

        After a 429, or before a slot was free, it is a rate limit: the provider is not slow.

        Args:
            seconds: The deadline's length.
        """
        limit = f"within {1e3 * seconds:.0f} ms"
        if self.is_throttled:
            message = f"{self.label}: asked to wait, and no answer {limit}"
            return ProviderError(message, kind="rate_limit")
        if not self.is_sent:
            return ProviderError(f"{self.label}: no call could start {limit}", kind="rate_limit")
        return ProviderError(f"{self.label}: no answer {limit}", kind="timeout")
