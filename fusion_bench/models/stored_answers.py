"""Answers that are paid for once: asked in batches, kept in SQLite, resumed where they stopped.

The key of an answer is the SHA-256 of the text and of all else that it depends on: method, model,
endpoint, prompt. Neither texts nor API keys are stored, passages that a model wrote are.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractContextManager, asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Final, Protocol

from pydantic import Field

from fusion_bench.config.models import MOST_WORKERS
from fusion_bench.config.server_fields import HttpServerModel
from fusion_bench.errors import ConfigError, DataError, FusionBenchError, ProviderError
from fusion_bench.util.calls import RetryRules, call_with_retries
from fusion_bench.util.databases import open_database, wrap_database_errors
from fusion_bench.util.files import read_regular_text
from fusion_bench.util.http_client import JsonClient, open_client
from fusion_bench.util.json_text import count_at, malformed_error, mapping_at, message_at

#: Raised when the layout or the meaning of a key changes.
VERSION: Final = 1
TABLES: Final = f"""
CREATE TABLE IF NOT EXISTS answers (key TEXT PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID;
PRAGMA user_version = {VERSION};
"""


class AnswerStore:
    """An answer store.

    Args:
        path: Its file, created if missing; None = in memory.

    Attributes:
        where: The file, for messages.

    Raises:
        DataError: The file is no answer store, or of another version.
    """

    def __init__(self, path: Path | None = None) -> None:
        self.where = str(path or "the answer store in memory")
        with self._wrap_errors():
            self._db = open_database(path)
            (version,) = self._db.execute("PRAGMA user_version").fetchone()
            tables = self._db.execute("SELECT name FROM sqlite_master").fetchall()
            if version not in {0, VERSION} or (version == 0 and tables):
                raise DataError(
                    f"{self.where}: no answer store of version {VERSION}: name another file with "
                    "--store"
                )
            if version == 0:
                self._db.executescript(TABLES)

    def close(self) -> None:
        """Close the file."""
        self._db.close()

    def _wrap_errors(self) -> AbstractContextManager[None]:
        return wrap_database_errors(self.where, "answer store")

    def is_empty(self) -> bool:
        """Whether it holds no answer."""
        with self._wrap_errors():
            return self._db.execute("SELECT 1 FROM answers LIMIT 1").fetchone() is None

    def read_answers(self, identity: str, texts: Sequence[str]) -> dict[str, bytes]:
        """The stored answers, by text."""
        keys = {_answer_key(identity, text): text for text in texts}
        statement = "SELECT key, value FROM answers WHERE key IN (SELECT value FROM json_each(?))"
        with self._wrap_errors():
            rows = self._db.execute(statement, (json.dumps([*keys]),)).fetchall()
        return {keys[key]: value for key, value in rows}

    def save_answers(self, identity: str, answers: Mapping[str, bytes]) -> None:
        """Store answers by text, all or none."""
        rows = [(_answer_key(identity, text), value) for text, value in answers.items()]
        with self._wrap_errors(), self._db:
            self._db.executemany("INSERT OR REPLACE INTO answers VALUES (?, ?)", rows)


def _answer_key(identity: str, text: str) -> str:
    return hashlib.sha256(json.dumps([identity, text]).encode()).hexdigest()


@dataclass(frozen=True)
class Reply:
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

    async def answer(self, texts: Sequence[str]) -> Reply:
        """One value per text.

        Raises:
            ProviderError: The call failed; the kind decides what happens next.
        """
        ...


@dataclass(frozen=True)
class Usage:
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

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.stored + other.stored,
            self.asked + other.asked,
            self.calls + other.calls,
            self.tokens + other.tokens,
        )


@dataclass
class _Work:
    """One collection under way."""

    model: Model
    store: AnswerStore
    on_progress: Callable[[int, int], None]
    total: int
    answers: dict[str, bytes]
    usage: Usage
    errors: list[FusionBenchError] = field(default_factory=list)


async def collect_answers(
    model: Model,
    texts: Sequence[str],
    store: AnswerStore,
    on_progress: Callable[[int, int], None] = lambda *_: None,
) -> tuple[list[bytes], Usage]:
    """The answer to each text, from the store or from the model.

    Args:
        model: Who is asked.
        texts: What is asked; one that stands twice is asked once.
        store: Keeps the answers.
        on_progress: Called with the number of answers known, and of all.

    Raises:
        ProviderError: A call failed for good; answers that came before are stored.
    """
    distinct = list(dict.fromkeys(texts))
    known = store.read_answers(model.identity, distinct)
    # Texts of about equal length share a batch, which local models answer faster.
    missing = sorted((text for text in distinct if text not in known), key=len)
    usage = Usage(stored=len(known), asked=len(missing))
    work = _Work(model, store, on_progress, len(distinct), known, usage)
    if missing:
        batches = iter([missing[i : i + model.batch] for i in range(0, len(missing), model.batch)])
        on_progress(len(known), len(distinct))

        async def take_batches() -> None:
            while not work.errors and (batch := next(batches, None)) is not None:
                try:
                    await _ask(work, batch)
                except FusionBenchError as error:
                    work.errors.append(error)

        await asyncio.gather(*(take_batches() for _ in range(model.concurrency)))
    if work.errors:
        raise _with_remedy(work)
    return [work.answers[text] for text in texts], work.usage


def _with_remedy(work: _Work) -> FusionBenchError:
    error, done = work.errors[0], len(work.answers)
    if not isinstance(error, ProviderError):
        return error
    return ProviderError(
        f"{error} ({done} of {work.total} answers are stored in {work.store.where}: run the same "
        "command again to resume)",
        kind=error.kind,
    )


async def _ask(work: _Work, batch: Sequence[str]) -> None:
    """Ask for one batch; what is refused as too large is split into halves."""
    try:
        reply = await call_with_retries(lambda: work.model.answer(batch), work.model.retries)
    except ProviderError as error:
        if error.kind != "too_large" or len(batch) == 1:
            raise
        half = (len(batch) + 1) // 2
        await _ask(work, batch[:half])
        await _ask(work, batch[half:])
        return
    answers = dict(zip(batch, reply.values, strict=True))
    work.store.save_answers(work.model.identity, answers)
    work.answers |= answers
    work.usage = replace(
        work.usage, calls=work.usage.calls + 1, tokens=work.usage.tokens + reply.tokens
    )
    work.on_progress(len(work.answers), work.total)


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
