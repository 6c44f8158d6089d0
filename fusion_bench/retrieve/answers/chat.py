"""A language model behind an OpenAI-compatible chat endpoint, whose answers are stored."""

from __future__ import annotations

import hashlib
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Annotated, Final

from pydantic import Field

from fusion_bench.config.fields.server import HttpServerModel
from fusion_bench.config.limits import MOST_WORKERS
from fusion_bench.errors import ConfigError, ProviderError
from fusion_bench.retrieve.answers.collect import Model, Reply
from fusion_bench.util.calls.retries import RetryRules
from fusion_bench.util.files.regular_files import read_regular_text
from fusion_bench.util.http import JsonClient, open_client
from fusion_bench.util.http.json_fields import count_at, malformed_error, mapping_at, message_at

PATH: Final = "/chat/completions"
#: Where the query stands in a prompt.
FIELD: Final = "{query}"
#: After Gao et al. 2022, "Precise Zero-Shot Dense Retrieval without Relevance Labels".
PROMPT: Final = """\
Please write a passage that answers the question.

Question: {query}

Passage:"""


class ChatSettings(HttpServerModel):
    """A model that answers one message.

    Attributes:
        model: Name of the model.
        base_url: URL of the server, which may be a local one.
        key: Environment variable that holds the API key; None = no authentication.
        temperature: Sampling temperature.
        max_tokens: Most tokens of an answer.
        timeout: Seconds for a whole request, from the connection to the last byte.
        concurrency: Most concurrent calls.
        attempts: Most calls for one answer, where the server is busy or down.
        wait: Seconds before the second of them; each further wait doubles.
    """

    model: Annotated[str, Field(min_length=1)]
    base_url: str = "https://api.openai.com/v1"
    key: str | None = "OPENAI_API_KEY"
    temperature: Annotated[float, Field(ge=0, le=2)] = 0.0
    max_tokens: Annotated[int, Field(ge=1)] = 256
    timeout: Annotated[float, Field(gt=0)] = 60.0
    concurrency: Annotated[int, Field(ge=1, le=MOST_WORKERS)] = 4
    attempts: Annotated[int, Field(ge=2)] = 5
    wait: Annotated[float, Field(ge=0)] = 1.0

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
        facts = [settings.model, f"{settings.base_url}{PATH}", digest]
        self.identity = json.dumps([kind, *facts, settings.temperature, settings.max_tokens])
        self.concurrency = settings.concurrency
        self.retries = RetryRules(
            settings.attempts, wait_initial=settings.wait, wait_jitter=min(1.0, settings.wait)
        )
        self._settings, self._remote, self._prompt = settings, remote, prompt
        self._kind, self._refuses_empty = kind, refuses_empty

    async def answer(self, texts: Sequence[str]) -> Reply:
        """What the model writes about one text."""
        (text,) = texts
        body = {
            "model": self._settings.model,
            "messages": [{"role": "user", "content": self._prompt.replace(FIELD, text)}],
            "temperature": self._settings.temperature,
            "max_tokens": self._settings.max_tokens,
        }
        data = await self._remote.post_json(PATH, body)
        answer = self._read_message(data)
        tokens = count_at(mapping_at(data, "usage"), "total_tokens")
        if self._refuses_empty and not answer:
            raise malformed_error(f"no {self._kind} for the query {text[:60]!r}")
        return Reply((self._remote.redact_text(answer).encode(),), tokens)

    def _read_message(self, data: object) -> str:
        """The message; a refusal, which is none, is empty where that is allowed."""
        try:
            return message_at(data).strip()
        except ProviderError as error:
            if self._refuses_empty or error.kind == "refused":
                raise
            return ""
