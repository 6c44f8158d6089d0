"""Answers that are paid for once: asked in batches, stored, resumed where they stopped."""

from __future__ import annotations

import hashlib
import json
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import astuple, dataclass
from operator import add
from pathlib import Path
from typing import Annotated, Final, Protocol

from pydantic import Field

from fusion_bench.errors import ConfigError, ProviderError
from fusion_bench.models.answer_stores import AnswerStore
from fusion_bench.models.endpoints import (
    ChatEndpoint,
    RepeatedServer,
    RetryRules,
    call_with_retries,
    run_workers,
)
from fusion_bench.util.files import read_regular_text
from fusion_bench.util.http_client import JsonClient, open_client
from fusion_bench.util.json_text import count_at, malformed_error, mapping_at, message_at


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


async def collect_answers(
    model: Model,
    texts: Sequence[str],
    store: AnswerStore,
    on_progress: Callable[[int, int], None] = lambda *_: None,
) -> tuple[list[bytes], AnswerCounts]:
    """The answer to each text, from the store or from the model.

    What is refused as too large is split into halves.

    Args:
        model: Who is asked.
        texts: What is asked; one that stands twice is asked once.
        store: Keeps the answers.
        on_progress: Called with the number of answers known, and of all.

    Raises:
        ProviderError: A call failed for good; answers that came before are stored.
    """
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


class ChatSettings(ChatEndpoint, RepeatedServer):
    """A model that answers one message.

    Attributes:
        max_tokens: Most tokens of an answer.
    """

    model: Annotated[str, Field(min_length=1)]
    max_tokens: Annotated[int, Field(ge=1)] = 256

    @asynccontextmanager
    async def open_chat(self) -> AsyncIterator[Model]:
        """Connect; each text is a whole message, and its answer may be empty.

        Raises:
            ConfigError: The key is missing.
        """
        async with open_client(self.base_url, self) as remote:
            yield _ConnectedChat(self, remote, "chat", FIELD, refuses_empty=False)


class PassageWriter(ChatSettings):
    """Writes the passage that would answer a query.

    Attributes:
        prompt: File with a prompt of your own, which holds ``{query}``.
    """

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
            raise ConfigError(f"prompt {self.prompt}: {FIELD} must stand where the query belongs")
        return text

    @asynccontextmanager
    async def open_model(self) -> AsyncIterator[Model]:
        """Connect.

        Raises:
            ConfigError: The key is missing, or the prompt is wrong.
        """
        prompt = self.read_prompt()
        async with open_client(self.base_url, self) as remote:
            yield _ConnectedChat(self, remote, "passage", prompt, refuses_empty=True)


class _ConnectedChat:
    """A chat endpoint that is connected; one text per call.

    Args:
        settings: The model.
        remote: The client of its server.
        kind: What it writes.
        prompt: In which the text takes the place of ``{query}``.
        refuses_empty: Whether an empty answer is a failure.
    """

    batch = 1

    def __init__(
        self,
        settings: ChatSettings,
        remote: JsonClient,
        kind: str,
        prompt: str,
        *,
        refuses_empty: bool,
    ) -> None:
        digest = hashlib.sha256(prompt.encode()).hexdigest()
        facts = [settings.model, f"{settings.base_url}{settings.path}", digest]
        self.identity = json.dumps([kind, *facts, settings.temperature, settings.max_tokens])
        self.concurrency, self.retries = settings.concurrency, settings.retries
        self._settings, self._remote, self._prompt = settings, remote, prompt
        self._kind, self._refuses_empty = kind, refuses_empty

    async def answer(self, texts: Sequence[str]) -> Answers:
        """What the model writes about one text."""
        (text,) = texts
        settings = self._settings
        body = settings.build_message(self._prompt.replace(FIELD, text), settings.max_tokens)
        data = await self._remote.post_json(settings.path, body)
        try:
            answer = message_at(data).strip()
        except ProviderError as error:
            if self._refuses_empty or error.kind == "refused":
                raise
            answer = ""  # a refusal, which is no message
        tokens = count_at(mapping_at(data, "usage"), "total_tokens")
        if self._refuses_empty and not answer:
            raise malformed_error(f"no {self._kind} for the query {text[:60]!r}")
        return Answers((self._remote.redact_text(answer).encode(),), tokens)
