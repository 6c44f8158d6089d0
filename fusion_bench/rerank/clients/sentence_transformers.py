"""A cross-encoder through sentence-transformers."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from fusion_bench.errors import ConfigError
from fusion_bench.extras import require
from fusion_bench.records import ScoreSpace
from fusion_bench.rerank.clients._base import Price, Provider, providers
from fusion_bench.rerank.clients._local import DEFAULT_MODEL, Local, digest
from fusion_bench.rerank.protocol import Identity, Reranker

__all__ = ["SentenceTransformers"]


@providers.register
class SentenceTransformers(Provider):
    """Any ``CrossEncoder`` of one class; raw logits, so that the scale is known.

    Attributes:
        model: A name of the hub, or a local folder.
        device: ``cpu``, ``cuda`` …; None = the library's choice.
        max_length: Tokens of a pair.
    """

    source: ClassVar[str] = "sbert.net cross-encoders"

    method: Literal["sentence_transformers"] = "sentence_transformers"
    model: str = DEFAULT_MODEL
    device: str | None = None
    max_length: Annotated[int, Field(ge=8)] = 512
    space: ScoreSpace = "logit"
    batch: int = 32
    max_tokens: int | None = None
    concurrency: int = 1
    price: Price | None = Price()

    @property
    def identity(self) -> Identity:
        """With the digest of the weights where they lie in a folder."""
        folder = Path(self.model)
        files = sorted(folder.glob("*.safetensors")) + sorted(folder.glob("*.bin"))
        cut = f"{self.max_length} tokens a pair, {self.truncation.label}"
        endpoint = digest(files) if files else ""
        return replace(super().identity, endpoint=endpoint, truncation=cut)

    @asynccontextmanager
    async def open(self) -> AsyncIterator[Reranker]:
        """Load it."""
        library = require("sentence_transformers", extra="local", purpose="a local cross-encoder")
        torch = require("torch", extra="local", purpose="a local cross-encoder")
        try:
            encoder = library.CrossEncoder(
                self.model, device=self.device, max_length=self.max_length
            )
        except (OSError, ValueError, RuntimeError) as error:
            problem = str(error).strip().splitlines()[0]
            raise ConfigError(f"model {self.model!r}: cannot be loaded: {problem}") from None
        yield Local(self.identity, self.batch, _scorer(encoder, torch.nn.Identity(), self.batch))


def _scorer(encoder: Any, raw: Any, batch: int) -> Any:  # noqa: ANN401 - no types without the extra
    def scores(query: str, documents: Sequence[str]) -> Any:  # noqa: ANN401
        pairs = [(query, document) for document in documents]
        found = encoder.predict(pairs, batch_size=batch, activation_fn=raw, show_progress_bar=False)
        if found.shape != (len(documents),):
            raise ValueError(f"{found.shape} for {len(documents)} pairs: one class is needed")
        return found.tolist()

    return scores
