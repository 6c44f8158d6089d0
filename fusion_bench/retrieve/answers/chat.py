"""A language model behind an OpenAI-compatible chat endpoint that writes a passage (HyDE)."""

from __future__ import annotations

import hashlib
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Annotated, Final

from pydantic import Field

from fusion_bench.config.http_fields import ServerModel
from fusion_bench.config.limits import MOST_WORKERS
from fusion_bench.errors import ConfigError
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


class PassageWriter(ServerModel):
    """Writes the passage that would answer a query.

    Attributes:
        model: Name of the model.
        base_url: URL of the server, which may be a local one.
        key: Environment variable that holds the API key; None = no authentication.
        prompt: File with a prompt of your own, which holds ``{query}``.
        temperature: Sampling temperature.
        max_tokens: Most tokens of a passage.
        timeout: Seconds for a whole request, from the connection to the last byte.
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
    concurrency: Annotated[int, Field(ge=1, le=MOST_WORKERS)] = 4
    attempts: Annotated[int, Field(ge=2)] = 5
    wait: Annotated[float, Field(ge=0)] = 1.0

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
        async with open_client(self.base_url, self.key, self.timeout, self.concurrency) as remote:
            yield _ConnectedWriter(self, remote, prompt)


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
        passage = message_at(data).strip()
        tokens = count_at(mapping_at(data, "usage"), "total_tokens")
        if not passage:
            raise malformed_error(f"no passage for the query {query[:60]!r}")
        return Reply((self._remote.redact_text(passage).encode(),), tokens)
