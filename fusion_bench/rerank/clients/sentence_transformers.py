"""A cross-encoder through sentence-transformers."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, ClassVar, Literal

from fusion_bench.errors import ConfigError
from fusion_bench.rerank.clients._base import providers
from fusion_bench.rerank.clients._local import LocalProvider, LocalReranker, hash_files
from fusion_bench.rerank.protocol import Reranker
from fusion_bench.util.optional_imports import import_optional


@providers.register
class SentenceTransformers(LocalProvider):
    """Any ``CrossEncoder`` with one output; scores are raw logits.

    Attributes:
        model: Name on the Hugging Face hub, or a local folder.
        device: Such as ``cpu`` or ``cuda``; None = the library's choice.
        max_length: Most tokens of a pair.
    """

    source: ClassVar[str] = "sbert.net cross-encoders"

    method: Literal["sentence_transformers"] = "sentence_transformers"
    device: str | None = None

    @property
    def weights_digest(self) -> str:
        """Digest of the weights in a local folder; empty for a model of the hub."""
        folder = Path(self.model)
        files = sorted(folder.glob("*.safetensors")) + sorted(folder.glob("*.bin"))
        return hash_files(files) if files else ""

    @asynccontextmanager
    async def open_reranker(self) -> AsyncIterator[Reranker]:
        """Load the model."""
        library = import_optional(
            "sentence_transformers", extra="local", purpose="a local cross-encoder"
        )
        torch = import_optional("torch", extra="local", purpose="a local cross-encoder")
        try:
            encoder = library.CrossEncoder(
                self.model, device=self.device, max_length=self.max_length
            )
        except (OSError, ValueError, RuntimeError) as error:
            problem = str(error).strip().splitlines()[0]
            raise ConfigError(f"model {self.model!r}: cannot be loaded: {problem}") from None
        yield LocalReranker(
            self.model_identity, self.batch, _make_scorer(encoder, torch.nn.Identity(), self.batch)
        )


def _make_scorer(encoder: Any, raw: Any, batch: int) -> Any:  # noqa: ANN401 - no types without the extra
    def scores(query: str, documents: Sequence[str]) -> Any:  # noqa: ANN401
        pairs = [(query, document) for document in documents]
        logits = encoder.predict(
            pairs, batch_size=batch, activation_fn=raw, show_progress_bar=False
        )
        if logits.shape != (len(documents),):
            raise ValueError(f"{logits.shape} for {len(documents)} pairs: one output is needed")
        return logits.tolist()

    return scores
