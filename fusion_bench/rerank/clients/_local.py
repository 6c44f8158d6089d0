"""Base classes of local cross-encoders: a model in a thread, one call at a time."""

from __future__ import annotations

import hashlib
from abc import abstractmethod
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Annotated, TypeAlias

from pydantic import Field

from fusion_bench.data.records import ScoreSpace
from fusion_bench.errors import ConfigError, ProviderError
from fusion_bench.rerank.clients._base import Price, Provider
from fusion_bench.rerank.protocol import Identity, Reply, Reranker
from fusion_bench.util.calls.user_code import call_in_thread
from fusion_bench.util.files.regular_files import open_regular

#: Query and documents → one logit each.
PairScorer: TypeAlias = Callable[[str, Sequence[str]], Sequence[float]]


class LocalProvider(Provider):
    """A local cross-encoder.

    Attributes:
        max_length: Most tokens of a pair of query and document.
    """

    model: str = "cross-encoder/ms-marco-MiniLM-L-6-v2"
    max_length: Annotated[int, Field(ge=8)] = 512
    space: ScoreSpace = "logit"
    batch: int = 32
    max_tokens: int | None = None
    concurrency: int = 1
    price: Price | None = Price()

    @property
    @abstractmethod
    def weights_digest(self) -> str:
        """Digest of its files; empty if they are unknown."""

    @abstractmethod
    def load_scorer(self) -> PairScorer:
        """Load the model: query and documents → one logit each."""

    @property
    def model_identity(self) -> Identity:
        """With the digest of the model's files as the endpoint."""
        cut = f"{self.max_length} tokens a pair, {self.truncation.label}"
        return replace(super().model_identity, endpoint=self.weights_digest, truncation=cut)

    @asynccontextmanager
    async def open_reranker(self) -> AsyncIterator[Reranker]:
        """Load the model."""
        yield LocalReranker(self.model_identity, self.batch, self.load_scorer())


class LocalReranker:
    """A loaded model as a reranker.

    Args:
        identity: Its identity.
        batch: Documents per call.
        scorer: Query and documents → one logit each; runs in a thread.
    """

    def __init__(self, identity: Identity, batch: int, scorer: PairScorer) -> None:
        self.identity, self.batch, self._scorer = identity, batch, scorer

    async def score(self, query: str, documents: Sequence[str]) -> Reply:
        """Compute the scores in a thread."""
        try:
            scores = await call_in_thread(self._scorer, query, documents)
        except Exception as error:  # noqa: BLE001 - each runtime has its own exceptions
            who = self.identity.label
            raise ProviderError(f"{who}: the model failed: {error}", kind="server") from None
        return Reply(tuple(float(score) for score in scores))


def hash_files(files: Sequence[Path]) -> str:
    """SHA-256 over the files of a model.

    Raises:
        ConfigError: One cannot be read.
    """
    whole = hashlib.sha256()
    for path in files:
        try:
            with open_regular(path) as file:
                hashlib.file_digest(file, lambda: whole)
        except OSError as error:
            raise ConfigError(
                f"{path}: {error.strerror}: name the folder that holds the model"
            ) from None
    return f"sha256 {whole.hexdigest()[:32]}"
