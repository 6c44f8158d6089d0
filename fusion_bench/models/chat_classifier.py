"""A classifier of queries that asks a language model behind a chat endpoint."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Final

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from fusion_bench.config.models import parse_model
from fusion_bench.errors import ConfigError, CostLimitError, ProviderError
from fusion_bench.experiment.overrides import set_options
from fusion_bench.models.answer_stores import ScoreStore
from fusion_bench.models.call_limits import Budget, run_key, sum_booked_costs, summarize_events
from fusion_bench.models.endpoints import run_workers
from fusion_bench.models.provider_session import ProviderSession
from fusion_bench.models.query_types import ClassifiedQuery, make_classification
from fusion_bench.models.rerank_config import RerankSettings
from fusion_bench.models.reranker_protocol import Identity, Reply, Usage, approximate_tokens
from fusion_bench.models.rerankers import ChatProvider
from fusion_bench.schema import QueryType
from fusion_bench.util.http_client import JsonClient, open_client
from fusion_bench.util.json_text import malformed_error, message_at, parse_embedded_object, text_at

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


class ChatClassifierClient(ChatProvider):
    """A chat endpoint that is asked for the type of a query.

    A session of a reranker runs it, with the types as its documents: so limits, retries, prices and
    the store of answers are those of reranking.

    Attributes:
        answer_tokens: Most output tokens of an answer.
    """

    batch: int = len(TYPES)
    max_tokens: int | None = None
    answer_tokens: Annotated[int, Field(ge=1)] = 400

    @property
    def model_identity(self) -> Identity:
        """With the version and the parameters of the prompt."""
        prompt = f"{PROMPT_VERSION}, {self.degree}, {self.answer_tokens} tokens"
        return replace(super().model_identity, truncation="", prompt=prompt)

    def build_request(self, query: str, documents: Sequence[str]) -> dict[str, Any]:  # noqa: ARG002 - the types stand in the prompt
        """One message with the prompt."""
        return self.build_message(PROMPT.format(query=query), self.answer_tokens)

    def estimate_usage(self, query: str, documents: Sequence[str]) -> Usage:  # noqa: ARG002 - as above
        """The prompt, and an answer as it usually is."""
        tokens = approximate_tokens(PROMPT.format(query=query))
        return Usage(tokens=tokens, output_tokens=TYPICAL_TOKENS)


class ConnectedClassifier:
    """A :class:`ChatClassifierClient` that is connected; stores each answer it reads."""

    def __init__(self, client: ChatClassifierClient, remote: JsonClient, store: ScoreStore) -> None:
        self.identity, self.batch = client.model_identity, client.batch
        self._client, self._remote, self._store = client, remote, store

    async def score(self, query: str, documents: Sequence[str]) -> Reply:
        """Ask for the type of a query; a score for each type."""
        client = self._client
        data = await self._remote.post_json(client.path, client.build_request(query, documents))
        answer = parse_answer(data, self._remote.quote_text)
        redact = self._remote.redact_text
        cleared = {  # without the API key, and with no more texts than an honest answer has
            "entities": tuple(redact(text[:MAX_LENGTH]) for text in answer.entities[:MAX_TEXTS]),
            "expanded_queries": tuple(
                redact(text[:MAX_LENGTH]) for text in answer.expanded_queries[:MAX_TEXTS]
            ),
        }
        answer = answer.model_copy(update=cleared)
        self._store.save_answer(self.identity, query, answer.model_dump_json())
        by_type = dict(zip(TYPES, answer.scores, strict=True))
        return Reply(
            tuple(by_type[name] for name in documents),
            self._remote.read_name(text_at(data, "model")),
            client.parse_usage(data),
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
    on_progress: Callable[[int, int, float], None] = lambda *_: None

    @property
    def ledger(self) -> dict[str, Any]:
        """Calls, tokens, price and latency of all its runs."""
        return summarize_events(self.store.read_events(self._run_key))

    @property
    def _run_key(self) -> str:
        """Key of its runs in the ledger."""
        return run_key(self.client.model_identity, "classify")

    def classify(self, texts: Sequence[str]) -> list[ClassifiedQuery]:
        """One answer per text; equal texts are asked once.

        Raises:
            ConfigError: The key is missing.
            ProviderError: The server refuses, as for a wrong key or an unknown model.
            CostLimitError: The limit of the price was reached; answers are stored.
        """
        distinct = list(dict.fromkeys(texts))
        answers = dict(zip(distinct, asyncio.run(self._classify_all(distinct)), strict=True))
        return [answers[text] for text in texts]

    async def _classify_all(self, texts: Sequence[str]) -> list[ClassifiedQuery]:
        client, store, run = self.client, self.store, self._run_key
        budget = Budget(self.max_cost, sum_booked_costs(store.read_events(run)))
        answers: dict[str, ClassifiedQuery] = {}
        async with open_client(client.base_url, client) as remote:
            session = ProviderSession(
                ConnectedClassifier(client, remote, store),
                self.settings,
                provider=client,
                store=store,
                run=run,
                budget=budget,
            )

            async def classify_text(text: str) -> None:
                answers[text] = await self._classify_one(session, text)
                self.on_progress(len(answers), len(texts), budget.spent)

            await run_workers(texts, classify_text, 2 * client.concurrency)
        return [answers[text] for text in texts]

    async def _classify_one(self, session: ProviderSession, text: str) -> ClassifiedQuery:
        if not text.strip():
            return _make_failure(text, "the query has no text")
        try:
            await session.score_documents(text, TYPES)
        except CostLimitError:
            raise
        except ProviderError as error:
            if error.kind == "refused" and self.settings.strict:
                raise
            return _make_failure(text, f"{error.kind}: {error}")
        stored = self.store.read_answer(self.client.model_identity, text)
        if stored is None:
            return _make_failure(text, "the answer is not in the store")
        answer = ModelAnswer.model_validate_json(stored)
        classification = make_classification(
            text,
            answer.type,
            answer.confidence,
            entities=answer.entities,
            expanded=answer.expanded_queries,
        )
        return ClassifiedQuery(classification)


def _make_failure(text: str, reason: str) -> ClassifiedQuery:
    """A query that nobody could classify: ``hybrid``, with a confidence of 0 (BR-001)."""
    return ClassifiedQuery(make_classification(text, QueryType.HYBRID, 0.0), reason)


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
