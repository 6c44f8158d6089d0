"""Base classes of providers, and of those behind HTTP."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from fusion_bench.config.models import MOST_BATCH, MOST_WORKERS, StrictModel
from fusion_bench.config.registry import Method, MethodRegistry
from fusion_bench.data.records import ScoreSpace
from fusion_bench.models.endpoints import ChatEndpoint, ModelServer
from fusion_bench.models.reranker_protocol import (
    Identity,
    Reply,
    Reranker,
    Truncation,
    Usage,
    approximate_tokens,
    check_reply,
    read_rows,
    rows_to_scores,
)
from fusion_bench.util.http_client import JsonClient, open_client
from fusion_bench.util.json_text import count_at, mapping_at, text_at

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
    batch: Annotated[int, Field(ge=1, le=MOST_BATCH)] = 100
    max_tokens: Annotated[int, Field(ge=1)] | None = 8192
    tokenizer: Path | None = None
    concurrency: Annotated[int, Field(ge=1, le=MOST_WORKERS)] = 8
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


class HttpProvider(Provider, ModelServer):
    """A provider behind HTTP, by default with requests and responses like Jina's and Cohere's.

    Attributes:
        documents_key: Key of the documents in a request.
        count_key: Key of the number of results; all documents, as a blend needs every score.
        options: What else a request contains.
        results_key: Key of the list of results in a response.
        score_key: Key of the score in a result.
        logits_option: Key that says whether scores are raw logits, and its value where they are.
    """

    documents_key: ClassVar[str] = "documents"
    count_key: ClassVar[str] = "top_n"
    options: ClassVar[tuple[tuple[str, Any], ...]] = ()
    results_key: ClassVar[str] = "results"
    score_key: ClassVar[str] = "relevance_score"
    logits_option: ClassVar[tuple[str, bool] | None] = None

    @property
    def model_identity(self) -> Identity:
        """With the endpoint's URL."""
        return replace(super().model_identity, endpoint=f"{self.base_url}{self.path}")

    def build_request(self, query: str, documents: Sequence[str]) -> dict[str, Any]:
        """The request body, which asks for the scores of all documents."""
        texts = {self.documents_key: list(documents), self.count_key: len(documents)}
        body = {"model": self.model, "query": query, **texts, **dict(self.options)}
        if self.logits_option is not None:
            key, value = self.logits_option
            body[key] = value if self.space == "logit" else not value
        return body

    def parse_reply(self, data: Any, count: int) -> Reply:  # noqa: ANN401 - JSON
        """The scores of ``count`` documents in a response.

        Raises:
            ProviderError: Kind ``malformed``.
        """
        scores = rows_to_scores(mapping_at(data).get(self.results_key), count, self.score_key)
        return Reply(scores, text_at(data, "model"), self.parse_usage(data))

    def parse_usage(self, data: Any) -> Usage:  # noqa: ANN401 - JSON
        """What a response bills; by default one search, and ``usage.total_tokens``."""
        tokens = count_at(mapping_at(data, "usage"), "total_tokens", "prompt_tokens")
        return Usage(searches=1, tokens=tokens)

    def estimate_usage(self, query: str, documents: Sequence[str]) -> Usage:
        """One search, and the estimated tokens."""
        return Usage(searches=1) + super().estimate_usage(query, documents)

    @asynccontextmanager
    async def open_reranker(self) -> AsyncIterator[ConnectedProvider]:
        """Connect; see :meth:`Provider.open_reranker`."""
        async with open_client(self.base_url, self) as remote:
            model = remote.read_name(await self.resolve_model(remote))
            identity = replace(self.model_identity, model=model or self.model)
            yield ConnectedProvider(self, remote, identity)


class ChatProvider(ChatEndpoint, HttpProvider):
    """A provider that asks a language model for its scores."""

    source = "platform.openai.com/docs/api-reference/chat"

    method: Literal["chat"] = "chat"
    model: str

    @property
    def degree(self) -> str:
        """The temperature, as a part of the model's identity."""
        return "temperature " + (
            "not sent" if self.temperature is None else f"{self.temperature:g}"
        )

    def parse_usage(self, data: Any) -> Usage:  # noqa: ANN401 - JSON
        """Tokens of the prompt and of the answer."""
        usage = mapping_at(data, "usage")
        prompt, answer = count_at(usage, "prompt_tokens"), count_at(usage, "completion_tokens")
        return Usage(tokens=prompt, output_tokens=answer)


class ConnectedProvider:
    """An :class:`HttpProvider` that is connected."""

    def __init__(self, provider: HttpProvider, remote: JsonClient, identity: Identity) -> None:
        self.identity, self.batch = identity, provider.batch
        self._provider, self._remote = provider, remote

    async def score(self, query: str, documents: Sequence[str]) -> Reply:
        """Call the server."""
        body = self._provider.build_request(query, documents)
        data = await self._remote.post_json(self._provider.path, body)
        reply = self._provider.parse_reply(data, len(documents))
        return replace(reply, model=self._remote.read_name(reply.model))

    async def score_best(
        self, query: str, documents: Sequence[str], limit: int
    ) -> dict[int, float]:
        """The 0-based positions of the best documents, in the server's order, and their scores.

        Args:
            query: The query.
            documents: Their texts.
            limit: How many the server is asked for.

        Raises:
            ProviderError: The call failed, or the answer makes no sense.
        """
        provider, body = self._provider, self._provider.build_request(query, documents)
        data = await self._remote.post_json(provider.path, {**body, provider.count_key: limit})
        rows = mapping_at(data).get(provider.results_key)
        best = read_rows(rows, len(documents), provider.score_key)
        check_reply(Reply(tuple(best.values())), len(best), self.identity)
        return best


providers: MethodRegistry[Provider] = MethodRegistry(
    "rerank provider", "fusion_bench.models.rerankers", "fusion_bench.rerankers", Provider
)
