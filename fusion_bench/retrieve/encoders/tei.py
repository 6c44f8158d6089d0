"""Text-Embeddings-Inference."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Literal

from fusion_bench.retrieve.encoders._base import HttpEncoder, encoders
from fusion_bench.util.http import JsonClient
from fusion_bench.util.http.json_fields import malformed_error, text_at


@encoders.register
class TEI(HttpEncoder):
    """``/embed``: an array of arrays; ``/info`` names the model."""

    source: ClassVar[str] = "github.com/huggingface/text-embeddings-inference"
    path: ClassVar[str] = "/embed"

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
