"""What cross-encoders on this machine share: a model in a thread, one call at a time."""

from __future__ import annotations

import asyncio
import hashlib
from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated

from pydantic import Field

from fusion_bench.data.records import ScoreSpace
from fusion_bench.errors import ConfigError, ProviderError
from fusion_bench.rerank.clients._base import Price, Provider
from fusion_bench.rerank.protocol import Identity, Reply

__all__ = ["LocalProvider", "LocalReranker", "hash_files"]

DEFAULT_MODEL = "cross-encoder/ms-marco-MiniLM-L-6-v2"
#: Bytes read at a time.
CHUNK = 1 << 20


class LocalProvider(Provider):
    """A cross-encoder that costs time and nothing else.

    Attributes:
        max_length: Tokens of a pair of query and document.
    """

    model: str = DEFAULT_MODEL
    max_length: Annotated[int, Field(ge=8)] = 512
    space: ScoreSpace = "logit"
    batch: int = 32
    max_tokens: int | None = None
    concurrency: int = 1
    price: Price | None = Price()

    @property
    @abstractmethod
    def weights_digest(self) -> str:
        """Digest of its files; empty where they are not at hand."""

    @property
    def model_identity(self) -> Identity:
        """With the digest of the model's files in the place of an endpoint."""
        cut = f"{self.max_length} tokens a pair, {self.truncation.label}"
        return replace(super().model_identity, endpoint=self.weights_digest, truncation=cut)


class LocalReranker:
    """A loaded model as a reranker.

    Args:
        identity: Who it is.
        batch: Documents a call.
        scores: Query and documents → one logit each; runs in a thread.
    """

    def __init__(
        self,
        identity: Identity,
        batch: int,
        scores: Callable[[str, Sequence[str]], Sequence[float]],
    ) -> None:
        self.identity, self.batch, self._scores = identity, batch, scores

    async def score(self, query: str, documents: Sequence[str]) -> Reply:
        """Compute, without holding up what else goes on."""
        try:
            scores = await asyncio.to_thread(self._scores, query, documents)
        except Exception as error:  # noqa: BLE001 - each runtime raises classes of its own
            who = self.identity.label
            raise ProviderError(f"{who}: the model failed: {error}", kind="server") from None
        return Reply(tuple(float(score) for score in scores))


def hash_files(files: Sequence[Path]) -> str:
    """SHA-256 over the files of a model: what stands in the place of an endpoint's version.

    Raises:
        ConfigError: One cannot be read.
    """
    whole = hashlib.sha256()
    for path in files:
        try:
            with path.open("rb") as file:
                while chunk := file.read(CHUNK):
                    whole.update(chunk)
        except OSError as error:
            raise ConfigError(
                f"{path}: {error.strerror}: the folder of a model is needed, which holds it"
            ) from None
    return f"sha256 {whole.hexdigest()[:32]}"
