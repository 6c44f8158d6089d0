"""CONV-07-05's interfaces over the live pipeline: two fusions and four rerankers, by its names.

The formulas, the skipping and the blends are those of the dialect ``conv-07-05``. A strategy of
weight 0 is off: a document that only it returned is not in the fused list.
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, Self, cast

from fusion_bench.data.read_options import ReadOptions
from fusion_bench.data.records import Query
from fusion_bench.errors import ConfigError, ProviderError
from fusion_bench.models.reranker_protocol import Identity, Reply
from fusion_bench.models.rerankers import ConnectedProvider, HttpProvider, providers
from fusion_bench.models.rerankers.chat import fill_template, parse_scores
from fusion_bench.serving.live.configuration import configure_pipeline, parse_system
from fusion_bench.serving.live.final_list import rank_documents
from fusion_bench.serving.live.pipeline import Pipeline
from fusion_bench.serving.live.profiles import CONV_RERANKER, CONV_SETTINGS
from fusion_bench.serving.live.query_lists import (
    LIVE_QUERY,
    ListRules,
    QueryHit,
    align_lists,
    read_hits,
)
from fusion_bench.serving.live.rerankers import RerankerLike

log = logging.getLogger("fusion_bench.serving.live")

#: Names of a result's fields in the document → here.
NAMES = {"chunkId": "id", "content": "text"}
#: The one list that a reranker reads, and more documents than any list has.
FUSED, ALL = "fused", 1_000_000


@dataclass(frozen=True)
class FusedSource:
    """The rank, from 1, and the score of a chunk in the list of a strategy."""

    strategy: str
    rank: int
    score: float


@dataclass(frozen=True)
class FusedSearchResult:
    """One chunk of a fused list.

    Attributes:
        chunk_id: Its id.
        content: Its text.
        fused_score: 0 to 1 with ``RRFFusion``.
        sources: The lists that returned it.
        metadata: Of all lists; those of later lists win.
        reranked_score: 0 to 1; None = it was not reranked.
    """

    chunk_id: str
    content: str
    fused_score: float
    sources: tuple[FusedSource, ...] = ()
    metadata: Mapping[str, Any] = field(default_factory=dict)
    reranked_score: float | None = None

    def to_dict(self) -> dict[str, Any]:
        """The result as JSON has it, with the document's names."""
        reranked = {} if self.reranked_score is None else {"rerankedScore": self.reranked_score}
        return {
            "chunkId": self.chunk_id,
            "content": self.content,
            "fusedScore": self.fused_score,
            **reranked,
            "sources": [vars(source) for source in self.sources],
            "metadata": dict(self.metadata),
        }


class _Fusion:
    """A fusion of result sets by strategy."""

    def __init__(self, method: Mapping[str, Any]) -> None:
        self._method = dict(method)

    def fuse(
        self, result_sets: Mapping[str, Iterable[Any]], weights: Mapping[str, float]
    ) -> list[FusedSearchResult]:
        """Fuse the lists of the strategies.

        Args:
            result_sets: Strategy → its results, best first: mappings with ``chunkId``,
                ``content``, ``score`` and ``metadata``, or what ``read_hits`` takes.
            weights: By strategy; another name weighs 1.

        Raises:
            ConfigError: A weight is negative.
            DataError: A result breaks a rule.
        """
        lists: dict[str, list[QueryHit]] = {}
        for name, hits in result_sets.items():
            renamed = (  # ``source`` is the list's name again
                {NAMES.get(key, key): value for key, value in hit.items() if key != "source"}
                if isinstance(hit, Mapping)
                else hit
                for hit in hits
            )
            lists[name] = read_hits(renamed, name)
        if not lists:
            return []
        fusion = {**self._method, "weights": dict(weights)}
        keys = {"dialect": "conv-07-05", "runs": list(lists), "fusion": fusion, "top_k": ALL}
        rules = ListRules(
            roles={name: frozenset({name}) for name in lists},
            options={name: ReadOptions(rank_from="column") for name in lists},
            ties="first_seen",
        )
        system = parse_system(keys)
        runs = align_lists(Query(LIVE_QUERY), lists, system.runs, rules)
        if runs is None:
            return []
        return [
            FusedSearchResult(
                chunk_id=document.id,
                content=document.text or "",
                fused_score=document.fused_score,
                sources=tuple(
                    FusedSource(hit.list, hit.rank, hit.score) for hit in document.sources
                ),
                metadata=document.metadata,
            )
            for document in rank_documents(system, runs, lists)
        ]


class RRFFusion(_Fusion):
    """Reciprocal ranks, divided by 3/(k+1) and clamped to 1.

    Args:
        k: Flattens the difference between neighboring ranks.
    """

    def __init__(self, k: int = 60) -> None:
        super().__init__({"method": "RRFFusion", "k": k})


class WeightedScoreFusion(_Fusion):
    """The weighted mean of the scores of the lists that returned a chunk."""

    def __init__(self) -> None:
        super().__init__({"method": "WeightedScoreFusion"})


class NoOpReranker:
    """Keeps the order."""

    async def rerank(
        self,
        query: str,  # noqa: ARG002 - the document's interface
        candidates: Sequence[FusedSearchResult],
        limit: int,
    ) -> list[FusedSearchResult]:
        """The first ``limit`` candidates."""
        return list(candidates[:limit])


class ChainReranker:
    """Any reranker behind the document's interface.

    ``async with`` keeps its connections open; without it each call opens them. What could not be
    read in a language model's answer is 0.5, as in the document, and logged.

    Args:
        reranker: Who scores, as for ``Pipeline``.
        always_rerank: False = as many candidates as are wanted, or fewer, keep their order.
        raises: Whether a failure is an error; else the candidates keep their order.
    """

    def __init__(
        self, reranker: RerankerLike, *, always_rerank: bool = True, raises: bool = True
    ) -> None:
        self._raises = raises
        blend = {"method": "replace", "depth": ALL, "always_rerank": always_rerank}
        system = {
            "runs": [FUSED],
            "fusion": {"method": "weighted_score", "normalize": "none"},  # of one list: its scores
            "blend": {**blend, "reranker": CONV_RERANKER},
        }
        rules = ListRules({}, {}, "first_seen")
        config = configure_pipeline(
            system, rules, rerankers={CONV_RERANKER: reranker}, settings=CONV_SETTINGS
        )
        self._pipeline = Pipeline.from_config(replace(config, keeps_unread=True))

    async def rerank(
        self, query: str, candidates: Sequence[FusedSearchResult], limit: int
    ) -> list[FusedSearchResult]:
        """The ``limit`` best candidates by rerank score.

        Raises:
            ProviderError: The reranker failed, where that is an error.
        """
        if not candidates:
            return []
        if not self._pipeline.is_open:
            async with self:
                return await self.rerank(query, candidates, limit)
        by_id = {candidate.chunk_id: candidate for candidate in candidates}
        fused = [(c.chunk_id, c.fused_score, c.content) for c in candidates]
        result = await self._pipeline.search(query, {FUSED: fused}, limit=limit)
        if self._raises and result.failures:
            raise ProviderError(result.degraded, kind=result.failures[-1][1])
        if result.degraded:
            log.warning("%s", result.degraded)
        return [
            replace(by_id[document.id], reranked_score=document.rerank_score)
            for document in result.documents
        ]

    async def __aenter__(self) -> Self:
        await self._pipeline.__aenter__()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._pipeline.__aexit__()


#: The document's prompt (5.2).
PROMPT = """\
Query: "{query}"

Rate the relevance of each document to the query on a scale of 0-10.
Return only the scores as a comma-separated list.

Documents:
{documents}

Scores (comma-separated, e.g., "8,5,9,3"):"""
#: Characters of a document in a prompt, and tokens of an answer.
CHARACTERS, ANSWER_TOKENS = 500, 100


class LLMClient(Protocol):
    """The client of a language model; ``complete`` may be a coroutine function."""

    def complete(self, *, prompt: str, max_tokens: int, temperature: float) -> Any:  # noqa: ANN401
        """The text that a model writes."""


class _ClientScores:
    """A client as a reranker of the pipeline."""

    identity = Identity("client", "LLMClient", "unit", prompt="CONV-07-05")

    def __init__(self, client: LLMClient, batch: int) -> None:
        self._client, self.batch = client, batch

    async def score(self, query: str, documents: Sequence[str]) -> Reply:
        prompt = fill_template(PROMPT, query, documents, CHARACTERS)
        answer = self._client.complete(prompt=prompt, max_tokens=ANSWER_TOKENS, temperature=0)
        if inspect.isawaitable(answer):
            answer = await answer
        scores, unread = parse_scores(str(answer), len(documents))
        return Reply(scores, unread=unread)


class LLMReranker(ChainReranker):
    """Scores by a language model, in batches; a failure keeps the fused order.

    Args:
        llm_client: Its client, which gets the document's prompt; or the name of a model for the
            provider ``chat``, which has a prompt of its own.
        always_rerank: False = as many candidates as are wanted, or fewer, keep their order.
        batch_size: Documents of a prompt.
        keys: Further keys of the provider ``chat``, such as ``base_url``.
    """

    def __init__(
        self,
        llm_client: LLMClient | str,
        *,
        always_rerank: bool = False,
        batch_size: int = 10,
        **keys: Any,  # noqa: ANN401 - the provider checks them
    ) -> None:
        reranker: RerankerLike = {
            "method": "chat", "model": llm_client, "batch": batch_size, **keys
        }  # fmt: skip
        if not isinstance(llm_client, str):
            if keys:
                raise ConfigError(f"{', '.join(keys)}: a client has no such key: leave it out")
            reranker = _ClientScores(llm_client, batch_size)
        super().__init__(reranker, always_rerank=always_rerank, raises=False)


class _ServerReranker:
    """A server that is asked for the ``limit`` best candidates, as in the document.

    ``async with`` keeps its connections open; without it each call opens them. There are no
    retries, and no circuit breaker.
    """

    def __init__(self, api_key: str | None, keys: Mapping[str, Any]) -> None:
        provider = cast("HttpProvider", providers.build(keys))
        self._provider = provider if api_key is None else provider.with_key(api_key)
        self._stack = AsyncExitStack()
        self._server: ConnectedProvider | None = None

    async def rerank(
        self, query: str, candidates: Sequence[FusedSearchResult], limit: int
    ) -> list[FusedSearchResult]:
        """The candidates that the server returns, in its order.

        Raises:
            ProviderError: The call failed, or the answer makes no sense.
        """
        if not candidates:
            return []
        if self._server is None:
            async with self:
                return await self.rerank(query, candidates, limit)
        texts = [self._provider.truncation(candidate.content) for candidate in candidates]
        best = await self._server.score_best(query, texts, limit)
        return [replace(candidates[place], reranked_score=best[place]) for place in best]

    async def __aenter__(self) -> Self:
        self._server = await self._stack.enter_async_context(self._provider.open_reranker())
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server = None
        await self._stack.aclose()


class CohereReranker(_ServerReranker):
    """Cohere's ``/v1/rerank``; a failure is an error.

    Args:
        api_key: The API key; None = that in ``COHERE_API_KEY``.
        model: Its name.
        keys: Further keys of the provider ``cohere_v1``.
    """

    def __init__(
        self,
        api_key: str | None = None,
        model: str = "rerank-multilingual-v3.0",
        **keys: Any,  # noqa: ANN401 - the provider checks them
    ) -> None:
        super().__init__(api_key, {"method": "cohere_v1", "model": model, **keys})


class VoyageReranker(_ServerReranker):
    """Voyage's ``/v1/rerank``; a failure is an error.

    Args:
        api_key: The API key; None = that in ``VOYAGE_API_KEY``.
        model: Its name.
        keys: Further keys of the provider ``voyage``.
    """

    def __init__(
        self,
        api_key: str | None = None,
        model: str = "rerank-2",
        **keys: Any,  # noqa: ANN401 - the provider checks them
    ) -> None:
        super().__init__(api_key, {"method": "voyage", "model": model, **keys})
