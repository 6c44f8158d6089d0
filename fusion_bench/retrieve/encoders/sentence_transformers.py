"""A bi-encoder through sentence-transformers."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, ClassVar, Literal

import numpy as np
from pydantic import Field

from fusion_bench.errors import ConfigError
from fusion_bench.retrieve.encoders._base import Encode, LocalEncoder, Vectors, encoders
from fusion_bench.util.files.regular_files import open_regular
from fusion_bench.util.optional_imports import import_optional


@encoders.register
class SentenceTransformers(LocalEncoder):
    """Any ``SentenceTransformer``.

    Attributes:
        model: Name on the Hugging Face hub, or a local folder.
        device: Such as ``cpu`` or ``cuda``; None = the library's choice.
    """

    source: ClassVar[str] = "sbert.net"

    method: Literal["sentence_transformers"] = "sentence_transformers"
    model: Annotated[str, Field(min_length=1)]
    device: str | None = None

    @property
    def weights_digest(self) -> str:
        """Digest of the weights in a local folder; empty for a model of the hub."""
        whole = hashlib.sha256()
        folder = Path(self.model)
        files = [*sorted(folder.glob("*.safetensors")), *sorted(folder.glob("*.bin"))]
        for path in files:
            with open_regular(path) as file:
                hashlib.file_digest(file, lambda: whole)
        return f"sha256 {whole.hexdigest()}" if files else ""

    def load_encoder(self) -> Encode:
        """Load the model."""
        library = import_optional("sentence_transformers", extra="local", purpose="a local encoder")
        try:
            encoder = library.SentenceTransformer(self.model, device=self.device)
        except (OSError, ValueError, RuntimeError) as error:
            problem = (str(error).strip() or type(error).__name__).splitlines()[0]
            raise ConfigError(f"model {self.model!r}: cannot be loaded: {problem}") from None

        def encode(texts: Sequence[str]) -> Vectors:
            vectors = encoder.encode(
                list(texts), batch_size=self.batch, show_progress_bar=False, convert_to_numpy=True
            )
            return np.asarray(vectors, dtype=np.float32)

        return encode
