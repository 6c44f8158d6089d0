"""A language model behind an OpenAI-compatible chat endpoint that writes a passage (HyDE)."""

from __future__ import annotations

import hashlib
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Annotated, Any, Final

from pydantic import Field, field_validator

from fusion_bench.config.models import StrictModel
from fusion_bench.errors import ConfigError, ProviderError
from fusion_bench.retrieve.answers.collect import Model, Reply, RetryRules
from fusion_bench.util.api_key import ApiKey
from fusion_bench.util.http import JsonClient, check_url

PATH: Final = "/chat/completions"
#: Where the query stands in a prompt.
FIELD: Final = "{query}"
#: After Gao et al. 2022, "Precise Zero-Shot Dense Retrieval without Relevance Labels".
PROMPT: Final = """\
Please write a passage that answers the question.

Question: {query}

Passage:"""


class PassageWriter(StrictModel):
    """Writes the passage that would answer a query.

    Attributes:
        model: Name of the model.
        base_url: URL of the server, which may be a local one.
        key: Environment variable that holds the API key; None = no authentication.
        prompt: File with a prompt of your own, which holds ``{query}``.
        temperature: Sampling temperature.
        max_tokens: Most tokens of a passage.
        timeout: Seconds to wait for a connection, and for each part of a response.
        concurrency: Most concurrent calls.
        attempts: Most calls for one query, where the server is busy or down.
        wait: Seconds before the second of them; each further wait doubles.
    """

    model: Annotated[str, Field(min_length=1)]
    base_url: str = "https://api.openai.com/v1"
    key: str | None = "OPENAI_API_KEY"
    prompt: Path | None = None
    temperature: Annotated[float, Field(ge=0, le=2)] = 0.0
    max_tokens: Annotated[int, Field(ge=1)] = 256
    timeout: Annotated[float, Field(gt=0)] = 60.0
    concurrency: Annotated[int, Field(ge=1)] = 4
    attempts: Annotated[int, Field(ge=2)] = 5
    wait: Annotated[float, Field(ge=0)] = 1.0

    @field_validator("base_url")
    @classmethod
    def _plain_url(cls, value: str) -> str:
        try:
            return check_url(value)
        except ConfigError as error:
            raise ValueError(str(error)) from None

    def read_prompt(self) -> str:
        """The prompt, in which ``{query}`` is replaced.

        Raises:
            ConfigError: The file cannot be read, or does not hold ``{query}``.
        """
        if self.prompt is None:
            return PROMPT
        try:
            text = self.prompt.read_text(encoding="utf-8")
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
        key = None if self.key is None else ApiKey.from_environment(self.key)
        remote = JsonClient(
            self.base_url, key=key, timeout=self.timeout, connections=self.concurrency
        )
        try:
            yield _ConnectedWriter(self, remote, prompt)
        finally:
            await remote.close()


class _ConnectedWriter:
    """A :class:`PassageWriter` that is connected; one query per call."""

    batch = 1

    def __init__(self, writer: PassageWriter, remote: JsonClient, prompt: str) -> None:
        digest = hashlib.sha256(prompt.encode()).hexdigest()
        facts = [writer.model, f"{writer.base_url}{PATH}", digest]
        self.identity = json.dumps(["passage", *facts, writer.temperature, writer.max_tokens])
        self.concurrency = writer.concurrency
        self.retries = RetryRules(
            writer.attempts, wait_initial=writer.wait, wait_jitter=min(1.0, writer.wait)
        )
        self._writer, self._remote, self._prompt = writer, remote, prompt

    async def answer(self, texts: Sequence[str]) -> Reply:
        """The passage for one query."""
        (query,) = texts
        body = {
            "model": self._writer.model,
            "messages": [{"role": "user", "content": self._prompt.replace(FIELD, query)}],
            "temperature": self._writer.temperature,
            "max_tokens": self._writer.max_tokens,
        }
        data = await self._remote.post_json(PATH, body)
        passage, tokens = _parse_message(data)
        if not passage:
            raise ProviderError(
                f"malformed answer: no passage for the query {query[:60]!r}", kind="malformed"
            )
        return Reply((self._remote.redact_text(passage).encode(),), tokens)


def _parse_message(data: Any) -> tuple[str, int]:  # noqa: ANN401 - JSON
    """The first choice's text without blanks around it, and the tokens that it bills."""
    fields = data if isinstance(data, dict) else {}
    choices, usage = fields.get("choices"), fields.get("usage")
    first = choices[0] if isinstance(choices, list) and choices else None
    message = first.get("message") if isinstance(first, dict) else None
    content = message.get("content") if isinstance(message, dict) else None
    tokens = usage.get("total_tokens") if isinstance(usage, dict) else 0
    text = content.strip() if isinstance(content, str) else ""
    return text, tokens if type(tokens) is int else 0
