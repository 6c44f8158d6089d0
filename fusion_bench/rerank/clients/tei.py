"""Text-Embeddings-Inference's rerank endpoint."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Literal

from fusion_bench.rerank.clients._base import HttpProvider, Price, providers
from fusion_bench.rerank.protocol import Reply, rows_to_scores
from fusion_bench.util.http import JsonClient
from fusion_bench.util.http.json_fields import text_at


@providers.register
class TEI(HttpProvider):
    """TEI ``/rerank``: an array; status 413 above the server's batch, by default 32.

    ``space: unit`` = the server applies the sigmoid; ``logit`` = raw scores. ``/info`` names the
    model.
    """

    source: ClassVar[str] = "github.com/huggingface/text-embeddings-inference"
    path: ClassVar[str] = "/rerank"

    method: Literal["tei"] = "tei"
    base_url: str = "http://127.0.0.1:8080"
    batch: int = 32
    price: Price | None = Price()

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
