"""A classifier of queries that asks a language model behind a chat endpoint."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, ClassVar, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from fusion_bench.config.models import parse_model
from fusion_bench.errors import ConfigError, CostLimitError, FusionBenchError, ProviderError
from fusion_bench.experiment.overrides import set_options
from fusion_bench.models.call_limits import Budget
from fusion_bench.models.ledger import sum_booked_costs, summarize_events
from fusion_bench.models.provider_session import ProviderSession
from fusion_bench.models.query_types import ClassifiedQuery, make_classification, make_failure
from fusion_bench.models.rerank_config import RerankSettings
from fusion_bench.models.reranker_protocol import (
    Identity,
    Reply,
    Reranker,
    Usage,
    approximate_tokens,
)
from fusion_bench.models.rerankers import HttpProvider
from fusion_bench.models.score_store import ScoreStore
from fusion_bench.schema import QueryType
from fusion_bench.util.http_client import JsonClient, open_client
from fusion_bench.util.json_text import (
    count_at,
    malformed_error,
    mapping_at,
    message_at,
    parse_embedded_object,
    text_at,
)

#: Changes with the prompt, so that stored answers to another prompt are not used.
PROMPT_VERSION: Final = "classify/1"
#: What is scored in place of documents: each type gets how sure the model is of it.
TYPES: Final = tuple(str(each) for each in QueryType)
#: Output tokens of an answer, as a rule.
TYPICAL_TOKENS: Final = 80
#: Most entities, and most queries in other words, of an answer.
MAX_TEXTS: Final = 50
#: Most characters of each.
MAX_LENGTH: Final = 1_000

PROMPT: Final = """\
Classify a search query. Types:
- local: it asks for one fact or detail
- global: it asks for an overview or a summary of many texts
- relationship: it asks how things are related, differ or act on each other
- hybrid: it asks for several of these, or it is not clear

Answer with one JSON object and nothing else. Its keys:
- "type": one of the types
- "confidence": how sure you are, from 0 to 1
- "entities": a list of the names in the query
- "expanded_queries": a list of up to 3 queries that ask the same in other words

Query: {query}"""


class ModelAnswer(BaseModel):
    """What the model is asked for; keys that it adds are ignored.

    Attributes:
        type: The type of the query.
        confidence: How sure it is.
        entities: Names in the query.
        expanded_queries: The query in other words.
    """

    model_config = ConfigDict(frozen=True, allow_inf_nan=False)

    type: QueryType
    confidence: Annotated[float, Field(ge=0, le=1)]
    entities: tuple[str, ...] = ()
    expanded_queries: tuple[str, ...] = ()

    @property
    def scores(self) -> tuple[float, ...]:
        """The confidence for its type, and the rest spread over the others; in order of TYPES."""
        rest = (1 - self.confidence) / (len(TYPES) - 1)
        return tuple(self.confidence if name == self.type else rest for name in TYPES)


class ChatClassifierClient(HttpProvider):
    """``/chat/completions`` of OpenAI or a compatible server, asked for the type of a query.

    A session of a reranker runs it, with the types as its documents: so limits, retries, prices and
    the store of answers are those of reranking.

    Attributes:
        temperature: Sampling temperature.
        answer_tokens: Most output tokens of an answer.
    """

    source: ClassVar[str] = "platform.openai.com/docs/api-reference/chat"
    path: ClassVar[str] = "/chat/completions"

    method: Literal["chat"] = "chat"
    model: str
    base_url: str = "https://api.openai.com/v1"
    key: str | None = "OPENAI_API_KEY"
    batch: int = len(TYPES)
    max_tokens: int | None = None
    temperature: Annotated[float, Field(ge=0, le=2)] = 0.0
    answer_tokens: Annotated[int, Field(ge=1)] = 400

    @property
    def model_identity(self) -> Identity:
        """With the version and the parameters of the prompt."""
        prompt = f"{PROMPT_VERSION}, temperature {self.temperature:g}, {self.answer_tokens} tokens"
        return replace(super().model_identity, truncation="", prompt=prompt)

    def build_request(self, query: str, documents: Sequence[str]) -> dict[str, Any]:  # noqa: ARG002 - the types stand in the prompt
        """One message with the prompt."""
        return {
            "model": self.model,
            "messages": [{"role": "user", "content": PROMPT.format(query=query)}],
            "temperature": self.temperature,
            "max_tokens": self.answer_tokens,
        }

    def parse_usage(self, data: Any) -> Usage:  # noqa: ANN401 - JSON
        """Tokens of the prompt and of the answer."""
        usage = mapping_at(data, "usage")
        prompt, answer = count_at(usage, "prompt_tokens"), count_at(usage, "completion_tokens")
        return Usage(tokens=prompt, output_tokens=answer)

    def estimate_usage(self, query: str, documents: Sequence[str]) -> Usage:  # noqa: ARG002 - as above
        """The prompt, and an answer as it usually is."""
        tokens = approximate_tokens(PROMPT.format(query=query))
        return Usage(tokens=tokens, output_tokens=TYPICAL_TOKENS)

    @asynccontextmanager
    async def connect(self, store: ScoreStore) -> AsyncIterator[Reranker]:
        """Connect; the answers go into the store.

        Raises:
            ConfigError: The key is missing.
            MissingExtraError: httpx is not installed.
        """
        async with open_client(self.base_url, self) as remote:
            yield _ConnectedClassifier(self, remote, store)


class _ConnectedClassifier:
    """A :class:`ChatClassifierClient` that is connected; stores each answer it reads."""

    def __init__(self, client: ChatClassifierClient, remote: JsonClient, store: ScoreStore) -> None:
        self.identity, self.batch = client.model_identity, client.batch
        self._client, self._remote, self._store = client, remote, store

    async def score(self, query: str, documents: Sequence[str]) -> Reply:
        """Ask for the type of a query; a score for each type."""
        client = self._client
        data = await self._remote.post_json(client.path, client.build_request(query, documents))
        answer = self._clear_answer(parse_answer(data, self._remote.quote_text))
        self._store.save_answer(self.identity, query, answer.model_dump_json())
        by_type = dict(zip(TYPES, answer.scores, strict=True))
        return Reply(
            tuple(by_type[name] for name in documents),
            self._remote.read_name(text_at(data, "model")),
            client.parse_usage(data),
        )

    def _clear_answer(self, answer: ModelAnswer) -> ModelAnswer:
        """The answer without the API key, and with no more texts than an honest one has."""

        def clear_texts(texts: Sequence[str]) -> tuple[str, ...]:
            return tuple(self._remote.redact_text(text[:MAX_LENGTH]) for text in texts[:MAX_TEXTS])

        return answer.model_copy(
            update={
                "entities": clear_texts(answer.entities),
                "expanded_queries": clear_texts(answer.expanded_queries),
            }
        )


def parse_answer(
    data: Any,  # noqa: ANN401 - JSON
    quote: Callable[[str], str] = repr,
) -> ModelAnswer:
    """The JSON object in the first choice's message; what stands around it is ignored.

    Args:
        data: The response.
        quote: Makes a part of the message fit for an error.

    Raises:
        ProviderError: Kind ``malformed``: no message, no such object, or a key breaks a rule.
    """
    content = message_at(data)
    try:
        return ModelAnswer.model_validate(parse_embedded_object(content))
    except ValidationError as error:
        first_error = error.errors(include_url=False)[0]
        place = ".".join(map(str, first_error["loc"]))
        problem = f"{place}: {first_error['msg']}"
    except ValueError:
        problem = f"no JSON object in {quote(content[:80])}"
    raise malformed_error(problem)


def ignore_progress(done: int, total: int, spent: float) -> None:
    """Report no progress."""


@dataclass
class ChatClassifier:
    """Asks a language model for the type of each query; an answer that is stored is not paid again.

    Attributes:
        client: The endpoint and the model.
        store: Answers and the ledger; in memory by default.
        settings: Timeouts, retries, breaker.
        max_cost: Stop before the price, earlier runs included, exceeds this; None = no limit.
        on_progress: Called with queries done, queries in all, and the price so far.
    """

    client: ChatClassifierClient
    store: ScoreStore = field(default_factory=ScoreStore)
    settings: RerankSettings = field(default_factory=RerankSettings)
    max_cost: float | None = None
    on_progress: Callable[[int, int, float], None] = ignore_progress

    @property
    def run_key(self) -> str:
        """Key of its runs in the ledger."""
        identity = self.client.model_identity
        return json.dumps(["classify", identity.provider, identity.model, identity.endpoint])

    @property
    def ledger(self) -> dict[str, Any]:
        """Calls, tokens, price and latency of all its runs."""
        return summarize_events(self.store.read_events(self.run_key))

    def classify(self, texts: Sequence[str]) -> list[ClassifiedQuery]:
        """One answer per text; equal texts are asked once.

        Raises:
            ConfigError: The key is missing.
            ProviderError: The server refuses, as for a wrong key or an unknown model.
            CostLimitError: The limit of the price was reached; answers are stored.
        """
        # The ledger counts retries; without a handler each would print its event's bare name.
        logging.getLogger("stamina").addHandler(logging.NullHandler())
        distinct = list(dict.fromkeys(texts))
        answers = dict(zip(distinct, asyncio.run(self._classify_all(distinct)), strict=True))
        return [answers[text] for text in texts]

    async def _classify_all(self, texts: Sequence[str]) -> list[ClassifiedQuery]:
        spent = sum_booked_costs(self.store.read_events(self.run_key))
        budget = Budget(self.max_cost, spent)
        answers: dict[str, ClassifiedQuery] = {}
        errors: list[FusionBenchError] = []
        waiting = iter(texts)
        async with self.client.connect(self.store) as reranker:
            session = ProviderSession(
                reranker,
                self.settings,
                provider=self.client,
                store=self.store,
                run=self.run_key,
                budget=budget,
            )

            async def classify_waiting() -> None:
                """Take one query after the other until an error stops all workers."""
                while not errors and (text := next(waiting, None)) is not None:
                    try:
                        answers[text] = await self._classify_one(session, text)
                    except FusionBenchError as error:
                        errors.append(error)
                    self.on_progress(len(answers), len(texts), budget.spent)

            workers = (classify_waiting() for _ in range(2 * self.client.concurrency))
            await asyncio.gather(*workers)
        if errors:
            raise errors[0]
        return [answers[text] for text in texts]

    async def _classify_one(self, session: ProviderSession, text: str) -> ClassifiedQuery:
        if not text.strip():
            return make_failure(text, "the query has no text")
        try:
            await session.score_documents(text, TYPES)
        except CostLimitError:
            raise
        except ProviderError as error:
            if error.kind == "refused" and self.settings.strict:
                raise
            return make_failure(text, f"{error.kind}: {error}")
        stored = self.store.read_answer(self.client.model_identity, text)
        if stored is None:
            return make_failure(text, "the answer is not in the store")
        answer = ModelAnswer.model_validate_json(stored)
        classification = make_classification(
            text,
            answer.type,
            answer.confidence,
            entities=answer.entities,
            expanded=answer.expanded_queries,
        )
        return ClassifiedQuery(classification)


def make_client(changes: Sequence[str], *, is_limited: bool) -> ChatClassifierClient:
    """The endpoint that ``KEY=VALUE`` describes.

    Args:
        changes: Keys of :class:`ChatClassifierClient`; ``model`` is needed.
        is_limited: Whether the price is limited, so that it has to be known.

    Raises:
        ConfigError: A key or a value breaks a rule, or the price is not known.
    """
    try:
        client = parse_model(ChatClassifierClient, set_options({"method": "chat"}, changes))
    except ConfigError as error:
        raise ConfigError(f"{error} (set it with --set KEY=VALUE)") from None
    if is_limited and client.price is None:
        raise ConfigError(
            f"--max-cost needs the price of {client.model_identity.label}: give it with --set "
            "price.per_million_tokens=… and price.per_million_output_tokens=…"
        )
    return client
