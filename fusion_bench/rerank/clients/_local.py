"""What cross-encoders on this machine share: a model in a thread, one call at a time."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable, Sequence
from pathlib import Path

from fusion_bench.errors import ConfigError, ProviderError
from fusion_bench.rerank.protocol import Identity, Reply

__all__ = ["DEFAULT_MODEL", "Local", "digest"]

DEFAULT_MODEL = "cross-encoder/ms-marco-MiniLM-L-6-v2"
#: Bytes read at a time.
CHUNK = 1 << 20


class Local:
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
            found = await asyncio.to_thread(self._scores, query, documents)
        except Exception as error:  # noqa: BLE001 - each runtime raises classes of its own
            who = self.identity.label
            raise ProviderError(f"{who}: the model failed: {error}", kind="server") from None
        return Reply(tuple(float(score) for score in found))


def digest(files: Sequence[Path]) -> str:
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
