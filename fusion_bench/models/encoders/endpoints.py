"""Encoders behind HTTP: OpenAI's embeddings, Text-Embeddings-Inference."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal

from pydantic import Field

from fusion_bench.models.encoders._base import HttpEncoder, encoders
from fusion_bench.util.http_client import JsonClient
from fusion_bench.util.json_text import count_at, malformed_error, mapping_at, text_at


@encoders.register
class OpenAIEncoder(HttpEncoder):
    """``/embeddings``.

    Attributes:
        dimensions: Length of the vectors, for models that can shorten them; None = the model's.
    """

    source = "platform.openai.com/docs/api-reference/embeddings"
    path = "/embeddings"

    method: Literal["openai"] = "openai"
    model: Annotated[str, Field(min_length=1)]
    base_url: str = "https://api.openai.com/v1"
    key: str | None = "OPENAI_API_KEY"
    dimensions: Annotated[int, Field(ge=1)] | None = None

    @property
    def endpoint(self) -> str:
        """With the length of the vectors."""
        length = "" if self.dimensions is None else f", {self.dimensions} dimensions"
        return f"{super().endpoint}{length}"

    def build_request(self, texts: Sequence[str]) -> dict[str, Any]:
        """The model and the texts."""
        body: dict[str, Any] = {
            "model": self.model,
            "input": list(texts),
            "encoding_format": "float",
        }
        return body if self.dimensions is None else {**body, "dimensions": self.dimensions}

    def parse_vectors(self, data: Any, count: int) -> tuple[Sequence[Any], int]:  # noqa: ANN401 - JSON
        """``data`` holds an ``index`` and an ``embedding`` for each text."""
        rows = data.get("data") if isinstance(data, dict) else None
        vectors: dict[int, Any] = {}
        for row in rows if isinstance(rows, list) else ():
            fields = row if isinstance(row, dict) else {}
            index = fields.get("index")
            if type(index) is int and index not in vectors and "embedding" in fields:
                vectors[index] = fields["embedding"]
        if vectors.keys() != set(range(count)):
            raise malformed_error(f"{len(vectors)} embeddings for {count} texts")
        tokens = count_at(mapping_at(data, "usage"), "total_tokens")
        return [vectors[i] for i in range(count)], tokens


@encoders.register
class TEIEncoder(HttpEncoder):
    """``/embed``: an array of arrays; ``/info`` names the model."""

    source = "github.com/huggingface/text-embeddings-inference"
    path = "/embed"

    method: Literal["tei"] = "tei"
    base_url: str = "http://127.0.0.1:8080"
    batch: int = 32

    def build_request(self, texts: Sequence[str]) -> dict[str, Any]:
        """The texts; the server truncates long ones instead of refusing them."""
        return {"inputs": list(texts), "truncate": True, "normalize": True}

    def parse_vectors(self, data: Any, count: int) -> tuple[Sequence[Any], int]:  # noqa: ANN401 - JSON
        """One array per text."""
        if not isinstance(data, list) or len(data) != count:
            given = len(data) if isinstance(data, list) else "no"
            raise malformed_error(f"{given} embeddings for {count} texts")
        return data, 0

    async def resolve_model(self, remote: JsonClient) -> str | None:
        """``model_id`` and ``model_sha``: another model may run under this URL tomorrow."""
        info = await remote.get_json("/info")
        return "@".join(filter(None, (text_at(info, "model_id"), text_at(info, "model_sha"))))
