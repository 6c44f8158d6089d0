"""A cross-encoder through sentence-transformers."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal

from fusion_bench.errors import ConfigError
from fusion_bench.rerank.clients._base import providers
from fusion_bench.rerank.clients._local import LocalProvider, PairScorer, hash_files
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

    def load_scorer(self) -> PairScorer:
        """Load the model."""
        purpose = "a local cross-encoder"
        library = import_optional("sentence_transformers", extra="local", purpose=purpose)
        torch = import_optional("torch", extra="local", purpose=purpose)
        try:
            encoder = library.CrossEncoder(
                self.model, device=self.device, max_length=self.max_length
            )
        except (OSError, ValueError, RuntimeError) as error:
            problem = str(error).strip().splitlines()[0]
            raise ConfigError(f"model {self.model!r}: cannot be loaded: {problem}") from None
        options = {"activation_fn": torch.nn.Identity(), "show_progress_bar": False}

        def score_pairs(query: str, documents: Sequence[str]) -> Any:  # noqa: ANN401 - no types without the extra
            pairs = [(query, document) for document in documents]
            logits = encoder.predict(pairs, batch_size=self.batch, **options)
            if logits.shape != (len(documents),):
                raise ValueError(f"{logits.shape} for {len(documents)} pairs: one output is needed")
            return logits.tolist()

        return score_pairs
