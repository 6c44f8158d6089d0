"""How the endpoint of a model is asked: its server, its chat messages, workers, repeated calls."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Annotated, Any, ClassVar, Final, Literal, TypeAlias, TypeVar

from pydantic import Field

from fusion_bench.config.models import MOST_WORKERS, StrictModel
from fusion_bench.config.server_fields import HttpServerModel
from fusion_bench.errors import FusionBenchError, ProviderError
from fusion_bench.util.http_client import JsonClient
from fusion_bench.util.optional_imports import import_optional

T = TypeVar("T")

RepeatedKind: TypeAlias = Literal["rate_limit", "connection", "server", "timeout"]
#: Failures of a server that is busy or down.
REPEATED: Final[tuple[RepeatedKind, ...]] = ("rate_limit", "connection", "server")


class RetryRules(StrictModel):
    """When a call is repeated.

    Attributes:
        attempts: Most calls in all.
        wait_initial: Seconds before the second call; each further wait doubles, plus jitter.
        wait_max: Longest wait; a provider that asks for more is not called again.
        wait_jitter: Most random seconds added to each wait.
        failure_kinds: Failures after which a call is repeated.
    """

    old_keys: ClassVar[Mapping[str, str]] = {"on": "'on' is now 'failure_kinds'"}

    attempts: Annotated[int, Field(ge=1)] = 5
    wait_initial: Annotated[float, Field(ge=0)] = 1.0
    wait_max: Annotated[float, Field(ge=0)] = 60.0
    wait_jitter: Annotated[float, Field(ge=0)] = 1.0
    failure_kinds: tuple[RepeatedKind, ...] = ("rate_limit",)

    def choose_wait(self, error: ProviderError, failed: int) -> float | None:
        """Seconds to wait before the next call; None = there is none.

        Args:
            error: How the last call failed.
            failed: Calls that have failed, from 1.
        """
        if error.kind not in self.failure_kinds or failed >= self.attempts:
            return None
        wait = error.retry_after
        if wait is None:
            jitter = random.uniform(0, self.wait_jitter)  # noqa: S311 - no secret
            wait = min(self.wait_max, self.wait_initial * 2.0 ** (failed - 1) + jitter)
        return wait if wait <= self.wait_max else None


async def call_with_retries(
    call: Callable[[], Awaitable[T]], choose_wait: Callable[[ProviderError, int], float | None]
) -> T:
    """What a call returns, repeated after a wait where it fails.

    Args:
        call: The call.
        choose_wait: As :meth:`RetryRules.choose_wait`.

    Raises:
        ProviderError: The last call failed.
    """
    try:
        return await call()
    except ProviderError as error:
        failure, wait = error, choose_wait(error, 1)
        if wait is None:
            raise
    failed = 1

    def find_wait(error: Exception) -> bool | float:
        """Seconds to wait before the next call; False = there is none."""
        nonlocal failed
        if error is failure:
            return wait
        failed += 1
        next_wait = choose_wait(error, failed) if isinstance(error, ProviderError) else None
        return False if next_wait is None else next_wait

    stamina = import_optional("stamina", extra="remote", purpose="retrying")
    # Without a handler each retry would print its event's bare name.
    logging.getLogger("stamina").addHandler(logging.NullHandler())
    async for attempt in stamina.retry_context(on=find_wait, attempts=None, timeout=None):
        with attempt:
            if attempt.num == 1:
                raise failure
            result = await call()
    return result


async def run_workers(
    items: Iterable[T], work: Callable[[T], Awaitable[None]], workers: int
) -> None:
    """Work through all items, some at a time, until an error stops all workers.

    Raises:
        FusionBenchError: The first error.
    """
    waiting = iter(items)
    errors: list[FusionBenchError] = []

    async def take_items() -> None:
        while not errors and (item := next(waiting, None)) is not None:
            try:
                await work(item)
            except FusionBenchError as error:
                errors.append(error)

    await asyncio.gather(*(take_items() for _ in range(workers)))
    if errors:
        raise errors[0]


class ModelServer(HttpServerModel):
    """A server that runs a model.

    Attributes:
        path: Path of the endpoint below ``base_url``.
        base_url: URL of the server, which may be a local one.
        key: Environment variable that holds the API key; None = no authentication.
        timeout: Seconds for a whole request, from the connection to the last byte.
    """

    path: ClassVar[str]

    base_url: str
    key: str | None = None
    timeout: Annotated[float, Field(gt=0)] = 60.0

    async def resolve_model(self, remote: JsonClient) -> str | None:  # noqa: ARG002 - for servers that must be asked
        """The model that the server says it runs; None = the configured name."""
        return None


class RepeatedServer(ModelServer):
    """A server whose calls are repeated where it is busy or down.

    Attributes:
        concurrency: Most concurrent calls.
        attempts: Most calls for one answer.
        wait: Seconds before the second of them; each further wait doubles.
    """

    concurrency: Annotated[int, Field(ge=1, le=MOST_WORKERS)] = 4
    attempts: Annotated[int, Field(ge=2)] = 5
    wait: Annotated[float, Field(ge=0)] = 1.0

    @property
    def retries(self) -> RetryRules:
        """When a call is repeated."""
        return RetryRules(
            attempts=self.attempts,
            wait_initial=self.wait,
            wait_jitter=min(1.0, self.wait),
            failure_kinds=REPEATED,
        )


class ChatEndpoint(ModelServer):
    """``/chat/completions`` of OpenAI or a compatible server.

    Attributes:
        model: Name of the model.
        temperature: Sampling temperature; None = the provider's own, and none is sent.
    """

    path: ClassVar[str] = "/chat/completions"

    model: str
    base_url: str = "https://api.openai.com/v1"
    key: str | None = "OPENAI_API_KEY"
    temperature: Annotated[float, Field(ge=0, le=2)] | None = 0.0

    def build_message(
        self, prompt: str, tokens: int, limit_field: str = "max_tokens"
    ) -> dict[str, Any]:
        """A request of one message.

        Args:
            prompt: The message.
            tokens: Most output tokens of the answer.
            limit_field: How the request names that limit.
        """
        return {
            "model": self.model,
            "messages": [{"role": "user", "content": prompt}],
            **({} if self.temperature is None else {"temperature": self.temperature}),
            limit_field: tokens,
        }
