"""Base classes of providers, and of those behind HTTP."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import replace
from itertools import accumulate
from pathlib import Path
from typing import Annotated, Any, ClassVar

from pydantic import Field, field_validator

from fusion_bench.config.models import StrictModel
from fusion_bench.config.registry import Method, MethodRegistry
from fusion_bench.data.records import ScoreSpace
from fusion_bench.errors import ConfigError, ProviderError
from fusion_bench.rerank.protocol import Identity, Reply, Reranker, Usage, rows_to_scores
from fusion_bench.rerank.truncation import Truncation, approximate_tokens
from fusion_bench.util.api_key import ApiKey
from fusion_bench.util.http import JsonClient, check_url

Amount = Annotated[float, Field(ge=0)]


class Price(StrictModel):
    """What a provider charges, in any one currency.

    Attributes:
        per_1000_searches: Per 1,000 search units; a provider that bills none counts one a request.
        per_million_tokens: Per million input tokens.
        per_million_output_tokens: Per million output tokens.
    """

    per_1000_searches: Amount = 0.0
    per_million_tokens: Amount = 0.0
    per_million_output_tokens: Amount = 0.0

    def cost_of(self, usage: Usage) -> float:
        """The cost of a usage."""
        return (
            usage.searches * self.per_1000_searches / 1e3
            + usage.tokens * self.per_million_tokens / 1e6
            + usage.output_tokens * self.per_million_output_tokens / 1e6
        )


class Provider(Method):
    """One reranker, as a configuration.

    Attributes:
        method: Its name.
        source: Where its API is described.
        model: Name of the model.
        space: Score space of the model.
        batch: Most documents per call.
        max_tokens: Documents are truncated to this number of tokens; None = never.
        tokenizer: A ``tokenizer.json`` that counts tokens; None = estimated.
        concurrency: Most concurrent calls.
        requests_per_minute: Most calls per minute, evenly spaced; None = no limit.
        price: What it charges; None = unknown, 0 for a local model.
    """

    source: ClassVar[str]

    method: str
    model: str = ""
    space: ScoreSpace = "unit"
    batch: Annotated[int, Field(ge=1)] = 100
    max_tokens: Annotated[int, Field(ge=1)] | None = 8192
    tokenizer: Path | None = None
    concurrency: Annotated[int, Field(ge=1)] = 8
    requests_per_minute: Annotated[float, Field(gt=0)] | None = None
    price: Price | None = None

    @property
    def truncation(self) -> Truncation:
        """How documents are truncated."""
        return Truncation(self.max_tokens, self.tokenizer)

    @property
    def model_identity(self) -> Identity:
        """What its scores depend on, as far as known before the first reply."""
        return Identity(
            provider=self.method,
            model=self.model,
            space=self.space,
            truncation=self.truncation.label,
        )

    @abstractmethod
    def open_reranker(self) -> AbstractAsyncContextManager[Reranker]:
        """Connect, or load the model; leaving the context releases it.

        Raises:
            ConfigError: A key is missing.
            MissingExtraError: A library is.
        """

    def estimate_usage(self, query: str, documents: Sequence[str]) -> Usage:
        """Estimated usage of one call."""
        query_tokens = approximate_tokens(query)
        return Usage(
            tokens=sum(query_tokens + approximate_tokens(document) for document in documents)
        )


class HttpProvider(Provider):
    """A provider behind HTTP, by default with requests and responses like Jina's and Cohere's.

    Attributes:
        path: Path of the endpoint below ``base_url``.
        documents_key: Key of the documents in a request.
        count_key: Key of the number of results; all documents, as a blend needs every score.
        options: What else a request contains.
        results_key: Key of the list of results in a response.
        score_key: Key of the score in a result.
        base_url: URL of the server, which may be a local one.
        key: Environment variable that holds the API key; None = no authentication.
        timeout: Seconds to wait for a connection, and for each part of a response.
    """

    path: ClassVar[str]
    documents_key: ClassVar[str] = "documents"
    count_key: ClassVar[str] = "top_n"
    options: ClassVar[Mapping[str, Any]] = {}
    results_key: ClassVar[str] = "results"
    score_key: ClassVar[str] = "relevance_score"

    base_url: str
    key: str | None = None
    timeout: Annotated[float, Field(gt=0)] = 60.0

    @field_validator("base_url")
    @classmethod
    def _plain_url(cls, value: str) -> str:
        try:
            return check_url(value)
        except ConfigError as error:
            raise ValueError(str(error)) from None

    @property
    def model_identity(self) -> Identity:
        """With the endpoint's URL."""
        return replace(super().model_identity, endpoint=f"{self.base_url}{self.path}")

    def build_request(self, query: str, documents: Sequence[str]) -> dict[str, Any]:
        """The request body, which asks for the scores of all documents."""
        texts = {self.documents_key: list(documents), self.count_key: len(documents)}
        return {"model": self.model, "query": query, **texts, **self.options}

    def parse_reply(self, data: Any, count: int) -> Reply:  # noqa: ANN401 - JSON
        """The scores of ``count`` documents in a response.

        Raises:
            ProviderError: Kind ``malformed``.
        """
        scores = rows_to_scores(mapping_at(data).get(self.results_key), count, self.score_key)
        return Reply(scores, text_at(data, "model"), self.parse_usage(data))

    def parse_usage(self, data: Any) -> Usage:  # noqa: ANN401 - JSON
        """What a response bills; by default one search, and ``usage.total_tokens``."""
        tokens = integer_at(mapping_at(data, "usage"), "total_tokens", "prompt_tokens")
        return Usage(searches=1, tokens=tokens)

    def estimate_usage(self, query: str, documents: Sequence[str]) -> Usage:
        """One search, and the estimated tokens."""
        return Usage(searches=1) + super().estimate_usage(query, documents)

    async def resolve_model(self, remote: JsonClient) -> str | None:  # noqa: ARG002 - for servers that must be asked
        """The model that the server runs; None = the configured name."""
        return None

    @asynccontextmanager
    async def open_reranker(self) -> AsyncIterator[Reranker]:
        """Connect; see :meth:`Provider.open`."""
        key = None if self.key is None else ApiKey.from_environment(self.key)
        remote = JsonClient(
            self.base_url, key=key, timeout=self.timeout, connections=self.concurrency
        )
        try:
            model = await self.resolve_model(remote)
            yield _ConnectedProvider(
                self, remote, replace(self.model_identity, model=model or self.model)
            )
        finally:
            await remote.close()


class _ConnectedProvider:
    """An :class:`HttpProvider` that is connected."""

    def __init__(self, provider: HttpProvider, remote: JsonClient, identity: Identity) -> None:
        self.identity, self.batch = identity, provider.batch
        self._provider, self._remote = provider, remote

    async def score(self, query: str, documents: Sequence[str]) -> Reply:
        """Call the server; split what it refuses as too large into halves."""
        body = self._provider.build_request(query, documents)
        try:
            data = await self._remote.post_json(self._provider.path, body)
        except ProviderError as error:
            if error.kind != "too_large" or len(documents) == 1:
                raise
            self.batch = min(self.batch, half := (len(documents) + 1) // 2)
            parts = (documents[:half], documents[half:])
            return _join_replies([await self.score(query, part) for part in parts])
        reply = self._provider.parse_reply(data, len(documents))
        said = None if reply.model is None else self._remote.redact_text(reply.model)
        return replace(reply, model=said)


def _join_replies(parts: Sequence[Reply]) -> Reply:
    models = {part.model for part in parts}
    if len(models) > 1:
        raise ProviderError("the model changed between two calls of a query", kind="malformed")
    starts = accumulate((len(part.scores) for part in parts[:-1]), initial=0)
    return Reply(
        tuple(score for part in parts for score in part.scores),
        model=models.pop(),
        usage=sum((part.usage for part in parts), Usage()),
        unread=tuple(
            start + position
            for start, part in zip(starts, parts, strict=True)
            for position in part.unread
        ),
    )


def mapping_at(data: Any, *keys: str) -> dict[str, Any]:  # noqa: ANN401 - JSON
    """The mapping under ``keys``; empty if there is none."""
    for key in keys:
        data = data.get(key) if isinstance(data, dict) else None
    return data if isinstance(data, dict) else {}


def integer_at(data: dict[str, Any], *keys: str) -> int:
    """The first of the values that is a whole number; 0 if none is."""
    for key in keys:
        value = data.get(key)
        if isinstance(value, int | float) and not isinstance(value, bool) and value % 1 == 0:
            return int(value)
    return 0


def text_at(data: Any, key: str) -> str | None:  # noqa: ANN401 - JSON
    """The non-empty text under a key; None if there is none."""
    value = data.get(key) if isinstance(data, dict) else None
    return value if isinstance(value, str) and value else None


providers: MethodRegistry[Provider] = MethodRegistry(
    "rerank provider", "fusion_bench.rerank.clients", "fusion_bench.rerankers", Provider
)
