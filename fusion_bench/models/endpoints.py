"""Endpoints of models: their server, chat messages, repeated calls, answers that are stored."""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import random
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import astuple, dataclass
from operator import add
from pathlib import Path
from typing import Annotated, Any, ClassVar, Final, Literal, Protocol, Self, TypeAlias, TypeVar

from pydantic import Field, PrivateAttr, ValidationInfo, field_validator

from fusion_bench.config.models import MOST_WORKERS, StrictModel
from fusion_bench.errors import ConfigError, FusionBenchError, ProviderError
from fusion_bench.models.answer_stores import AnswerStore
from fusion_bench.util.api_keys import ApiKey
from fusion_bench.util.files import read_regular_text
from fusion_bench.util.http_client import JsonClient, check_url, open_client
from fusion_bench.util.json_text import count_at, malformed_error, mapping_at, message_at
from fusion_bench.util.optional_imports import import_optional

T = TypeVar("T")

_VARIABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}")


class ServerModel(StrictModel):
    """A configuration with a ``base_url`` or ``url``, and a ``key``: a variable's name, or None."""

    @field_validator("base_url", "url", check_fields=False)
    @classmethod
    def _check_url(cls, value: str, info: ValidationInfo) -> str:
        try:
            return check_url(value, name=info.field_name or "url")
        except ConfigError as error:
            raise ValueError(str(error)) from None

    @field_validator("key", mode="before", check_fields=False)
    @classmethod
    def _check_key_name(cls, value: object) -> object:
        """The name of a variable; whatever else is given may be a key, and is not shown.

        Raises:
            ValueError: It is no such name.
        """
        if value is None or (isinstance(value, str) and _VARIABLE.fullmatch(value)):
            return value
        raise ValueError(
            "the name of an environment variable is needed, such as MY_API_KEY, which holds the "
            "API key (what was given is not shown)"
        )


class HttpServerModel(ServerModel):
    """A server that is asked by HTTP.

    Attributes:
        allow_http: Whether a key may be sent to another machine without TLS, where whoever is
            between reads it.
    """

    allow_http: bool = False


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

    _given_key: ApiKey | None = PrivateAttr(None)

    @property
    def given_key(self) -> ApiKey | None:
        """The API key that a caller gave; None = it is in the environment."""
        return self._given_key

    def with_key(self, value: str) -> Self:
        """Copy the server's settings with an API key of the caller, which no record shows.

        Raises:
            ConfigError: It is no API key.
        """
        made = self.model_copy()
        made._given_key = ApiKey.of_value(value, "api_key")
        return made

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

    path = "/chat/completions"

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


@dataclass(frozen=True)
class Answers:
    """Reply to one call.

    Attributes:
        values: One per text, in their order.
        tokens: Tokens that it bills; 0 = it does not say, or nothing is billed.
    """

    values: tuple[bytes, ...]
    tokens: int = 0


class Model(Protocol):
    """Answers texts.

    Attributes:
        identity: All that an answer depends on besides the text.
        batch: Most texts per call.
        concurrency: Most concurrent calls.
        retries: When a call is repeated.
    """

    identity: str
    batch: int
    concurrency: int
    retries: RetryRules

    async def answer(self, texts: Sequence[str]) -> Answers:
        """One value per text.

        Raises:
            ProviderError: The call failed; the kind decides what happens next.
        """
        ...


@dataclass(frozen=True)
class AnswerCounts:
    """What was asked for, and what was known.

    Attributes:
        stored: Texts whose answer was in the store.
        asked: Texts that were asked for.
        calls: Calls that were answered.
        tokens: Tokens that these calls bill.
    """

    stored: int = 0
    asked: int = 0
    calls: int = 0
    tokens: int = 0

    def __add__(self, other: AnswerCounts) -> AnswerCounts:
        return AnswerCounts(*map(add, astuple(self), astuple(other)))


def collect_answers(
    opening: AbstractAsyncContextManager[Model],
    texts: Sequence[str],
    store: AnswerStore,
    on_progress: Callable[[int, int], None] = lambda *_: None,
) -> tuple[list[bytes], AnswerCounts]:
    """The answer to each text, from the store or from the model.

    What is refused as too large is split into halves.

    Args:
        opening: Connects the model that is asked.
        texts: What is asked; one that appears twice is asked once.
        store: Keeps the answers.
        on_progress: Called with the number of answers known, and of all.

    Raises:
        ConfigError: The key is missing.
        ProviderError: A call failed for good; answers that came before are stored.
    """

    async def collect() -> tuple[list[bytes], AnswerCounts]:
        async with opening as model:
            return await _ask_missing(model, texts, store, on_progress)

    return asyncio.run(collect())


async def _ask_missing(
    model: Model,
    texts: Sequence[str],
    store: AnswerStore,
    on_progress: Callable[[int, int], None],
) -> tuple[list[bytes], AnswerCounts]:
    distinct = list(dict.fromkeys(texts))
    answers = store.read_answers(model.identity, distinct)
    # Texts of about equal length share a batch, which local models answer faster.
    missing = sorted((text for text in distinct if text not in answers), key=len)
    counts = AnswerCounts(stored=len(answers), asked=len(missing))
    if missing:
        on_progress(len(answers), len(distinct))

    async def ask(batch: Sequence[str]) -> None:
        nonlocal counts
        try:
            reply = await call_with_retries(lambda: model.answer(batch), model.retries.choose_wait)
        except ProviderError as error:
            if error.kind != "too_large" or len(batch) == 1:
                raise
            half = (len(batch) + 1) // 2
            await ask(batch[:half])
            await ask(batch[half:])
            return
        new = dict(zip(batch, reply.values, strict=True))
        store.save_answers(model.identity, new)
        answers.update(new)
        counts += AnswerCounts(calls=1, tokens=reply.tokens)
        on_progress(len(answers), len(distinct))

    try:
        batches = (missing[i : i + model.batch] for i in range(0, len(missing), model.batch))
        await run_workers(batches, ask, model.concurrency)
    except ProviderError as error:
        raise ProviderError(
            f"{error} ({len(answers)} of {len(distinct)} answers are stored in {store.where}: run "
            "the same command again to resume)",
            kind=error.kind,
        ) from None
    return [answers[text] for text in texts], counts


#: Where the query stands in a prompt.
FIELD: Final = "{query}"
#: After Gao et al. 2022, "Precise Zero-Shot Dense Retrieval without Relevance Labels".
PROMPT: Final = """\
Please write a passage that answers the question.

Question: {query}

Passage:"""


class PassageWriter(ChatEndpoint, RepeatedServer):
    """Writes the passage that would answer a query.

    Attributes:
        max_tokens: Most tokens of an answer.
        prompt: File with a prompt of your own, which holds ``{query}``.
    """

    model: Annotated[str, Field(min_length=1)]
    max_tokens: Annotated[int, Field(ge=1)] = 256
    prompt: Path | None = None

    def read_prompt(self) -> str:
        """The prompt, in which ``{query}`` is replaced.

        Raises:
            ConfigError: The file cannot be read, or does not hold ``{query}``.
        """
        if self.prompt is None:
            return PROMPT
        try:
            text = read_regular_text(self.prompt)
        except (OSError, ValueError) as error:
            raise ConfigError(f"prompt {self.prompt}: cannot be read: {error}") from None
        if FIELD not in text:
            raise ConfigError(f"prompt {self.prompt}: {FIELD} must mark the place of the query")
        return text

    @asynccontextmanager
    async def open_model(self) -> AsyncIterator[Model]:
        """Connect.

        Raises:
            ConfigError: The key is missing, or the prompt is wrong.
        """
        prompt = self.read_prompt()
        async with open_client(self.base_url, self) as remote:
            yield _ConnectedWriter(self, remote, prompt)


class _ConnectedWriter:
    """A writer of passages that is connected; one text per call.

    Args:
        settings: The model.
        remote: The client of its server.
        prompt: In which the text takes the place of ``{query}``.
    """

    batch = 1

    def __init__(self, settings: PassageWriter, remote: JsonClient, prompt: str) -> None:
        digest = hashlib.sha256(prompt.encode()).hexdigest()
        facts = [settings.model, f"{settings.base_url}{settings.path}", digest]
        self.identity = json.dumps(["passage", *facts, settings.temperature, settings.max_tokens])
        self.concurrency, self.retries = settings.concurrency, settings.retries
        self._settings, self._remote, self._prompt = settings, remote, prompt

    async def answer(self, texts: Sequence[str]) -> Answers:
        """What the model writes about one text."""
        (text,) = texts
        settings = self._settings
        body = settings.build_message(self._prompt.replace(FIELD, text), settings.max_tokens)
        data = await self._remote.post_json(settings.path, body)
        answer = message_at(data).strip()
        tokens = count_at(mapping_at(data, "usage"), "total_tokens")
        if not answer:
            raise malformed_error(f"no passage for the query {text[:60]!r}")
        return Answers((self._remote.redact_text(answer).encode(),), tokens)
