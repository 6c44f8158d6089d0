"""Rerank endpoints: Cohere, Infinity, Jina, Mixedbread, TEI, vLLM, Voyage."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar, Literal

from fusion_bench.models.reranker_protocol import Reply, Usage, rows_to_scores
from fusion_bench.models.rerankers._base import HttpProvider, Price, providers
from fusion_bench.util.http_client import JsonClient
from fusion_bench.util.json_text import count_at, mapping_at, text_at

#: Documents of one search unit.
DOCUMENTS_PER_SEARCH = 100


@providers.register
class CohereV1(HttpProvider):
    """Cohere ``/v1/rerank``."""

    source = "docs.cohere.com/reference/rerank"
    path = "/v1/rerank"
    options: ClassVar[tuple[tuple[str, Any], ...]] = (("return_documents", False),)

    method: Literal["cohere_v1"] = "cohere_v1"
    model: str = "rerank-multilingual-v3.0"
    base_url: str = "https://api.cohere.com"
    key: str | None = "COHERE_API_KEY"
    batch: int = 1000
    max_tokens: int | None = 2048

    def parse_usage(self, data: Any) -> Usage:  # noqa: ANN401 - JSON
        """``meta.billed_units``."""
        billed = mapping_at(data, "meta", "billed_units")
        return Usage(count_at(billed, "search_units"), count_at(billed, "input_tokens"))

    def parse_reply(self, data: Any, count: int) -> Reply:  # noqa: ANN401 - JSON
        """With the search units of our own count where the server states none."""
        reply = super().parse_reply(data, count)
        units = reply.usage.searches or math.ceil(count / DOCUMENTS_PER_SEARCH)
        return replace(reply, usage=replace(reply.usage, searches=units))

    def estimate_usage(self, query: str, documents: Sequence[str]) -> Usage:  # noqa: ARG002 - see Provider
        """One search unit per hundred documents, rounded up."""
        return Usage(searches=math.ceil(len(documents) / DOCUMENTS_PER_SEARCH))


@providers.register
class Cohere(CohereV1):
    """Cohere ``/v2/rerank``, which refuses unknown fields such as ``top_k`` (422)."""

    path = "/v2/rerank"
    options = ()

    method: Literal["cohere"] = "cohere"  # type: ignore[assignment] # another name

    def build_request(self, query: str, documents: Sequence[str]) -> dict[str, Any]:
        """With ``max_tokens_per_doc``."""
        limit = {} if self.max_tokens is None else {"max_tokens_per_doc": self.max_tokens}
        return super().build_request(query, documents) | limit


@providers.register
class Jina(HttpProvider):
    """Jina ``/v1/rerank``.

    Scores of ``jina-colbert`` models exceed 1: they need ``space: unbounded``.
    """

    source = "jina.ai/reranker"
    path = "/v1/rerank"
    options = (("return_documents", False),)

    method: Literal["jina"] = "jina"
    model: str = "jina-reranker-v2-base-multilingual"
    base_url: str = "https://api.jina.ai"
    key: str | None = "JINA_API_KEY"


class OwnServer(HttpProvider):
    """A server of one's own, which charges nothing."""

    price: Price | None = Price()


@providers.register
class Infinity(OwnServer):
    """Infinity ``/rerank``; ``raw_scores`` false = a sigmoid has been applied."""

    source = "github.com/michaelfeil/infinity"
    path = "/rerank"
    options = (("return_documents", False),)
    logits_option = ("raw_scores", True)

    method: Literal["infinity"] = "infinity"
    model: str
    base_url: str = "http://127.0.0.1:7997"


@providers.register
class VLLM(OwnServer):
    """vLLM ``/v1/rerank``; ``use_activation`` false = raw logits."""

    source = "docs.vllm.ai, Jina- and Cohere-compatible rerank API"
    path = "/v1/rerank"
    logits_option = ("use_activation", False)

    method: Literal["vllm"] = "vllm"
    model: str
    base_url: str = "http://127.0.0.1:8000"


@providers.register
class Mixedbread(HttpProvider):
    """Mixedbread ``/v1/reranking``; it does not rewrite the query."""

    source = "mixedbread.com/api-reference"
    path = "/v1/reranking"
    documents_key = "input"
    count_key = "top_k"
    results_key = "data"
    score_key = "score"
    options = (("return_input", False), ("rewrite_query", False))

    method: Literal["mixedbread"] = "mixedbread"
    model: str = "mixedbread-ai/mxbai-rerank-large-v2"
    base_url: str = "https://api.mixedbread.com"
    key: str | None = "MXBAI_API_KEY"


@providers.register
class Voyage(HttpProvider):
    """Voyage ``/v1/rerank``; the server truncates long documents."""

    source = "docs.voyageai.com/reference/reranker-api"
    path = "/v1/rerank"
    count_key = "top_k"
    results_key = "data"
    options = (("return_documents", False), ("truncation", True))

    method: Literal["voyage"] = "voyage"
    model: str = "rerank-2"
    base_url: str = "https://api.voyageai.com"
    key: str | None = "VOYAGE_API_KEY"
    batch: int = 1000


@providers.register
class TEI(OwnServer):
    """TEI ``/rerank``: an array; status 413 above the server's batch, by default 32.

    ``space: unit`` = the server applies the sigmoid; ``logit`` = raw scores. ``/info`` names the
    model.
    """

    source = "github.com/huggingface/text-embeddings-inference"
    path = "/rerank"

    method: Literal["tei"] = "tei"
    base_url: str = "http://127.0.0.1:8080"
    batch: int = 32

    def build_request(self, query: str, documents: Sequence[str]) -> dict[str, Any]:
        """The body; the server truncates long documents instead of refusing them."""
        return {
            "query": query,
            "texts": list(documents),
            "raw_scores": self.space == "logit",
            "return_text": False,
            "truncate": True,
        }

    def parse_reply(self, data: Any, count: int) -> Reply:  # noqa: ANN401 - JSON
        """An array of ``index`` and ``score``."""
        return Reply(rows_to_scores(data, count, "score"))

    async def resolve_model(self, remote: JsonClient) -> str | None:
        """``model_id`` and ``model_sha`` of ``/info``; None = the configured name stands."""
        info = await remote.get_json("/info")
        model, sha = text_at(info, "model_id"), text_at(info, "model_sha")
        return f"{model}@{sha}" if model and sha else model
