"""Rerankers in this process: cross-encoders, Python objects, none."""

from __future__ import annotations

import hashlib
from abc import abstractmethod
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias, cast

import numpy as np
from pydantic import Field

from fusion_bench.config.plugins import find_module, user_code
from fusion_bench.data.records import ScoreSpace
from fusion_bench.errors import ConfigError, ProviderError
from fusion_bench.models.reranker_protocol import Identity, Reply, Reranker
from fusion_bench.models.rerankers._base import Price, Provider, providers
from fusion_bench.util.calls import call_in_thread
from fusion_bench.util.files import open_regular
from fusion_bench.util.optional_imports import import_optional

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


def _hash_files(files: Sequence[Path]) -> str:
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


@providers.register
class NoOp(Provider):
    """Scores that repeat the order of the documents, as a reference point."""

    source = "the identity"

    method: Literal["noop"] = "noop"
    model: str = "order"
    space: ScoreSpace = "order"
    batch: int = 1_000_000  # the orders of two batches cannot be merged
    price: Price | None = Price()

    @asynccontextmanager
    async def open_reranker(self) -> AsyncIterator[Reranker]:
        """Nothing to load."""
        yield LocalReranker(
            self.model_identity, self.batch, lambda _, documents: range(len(documents), 0, -1)
        )


@providers.register
class OnnxCrossEncoder(LocalProvider):
    """A model with one logit for a pair of query and document, on one CPU thread.

    Attributes:
        folder: Holds ``model.onnx`` (or ``onnx/model.onnx``) and ``tokenizer.json``.
        max_length: Most tokens of a pair; the longer of its two texts is truncated.
    """

    source = "sbert.net cross-encoders"

    method: Literal["onnx"] = "onnx"
    folder: Path

    @property
    def weights_digest(self) -> str:
        """Digest of model and tokenizer."""
        return _hash_files(self._model_files())

    def _model_files(self) -> tuple[Path, Path]:
        inside = self.folder / "onnx/model.onnx"
        model = inside if inside.is_file() else self.folder / "model.onnx"
        return model, self.folder / "tokenizer.json"

    def load_scorer(self) -> PairScorer:
        """Load the model."""
        return _OnnxScorer(*self._model_files(), self.max_length)


class _OnnxScorer:
    """A loaded model: one logit per pair of query and document."""

    def __init__(self, model: Path, tokenizer: Path, max_length: int) -> None:
        runtime = import_optional("onnxruntime", extra="local", purpose="a local cross-encoder")
        tokenizers = import_optional("tokenizers", extra="local", purpose="a local cross-encoder")
        options = runtime.SessionOptions()
        options.intra_op_num_threads = 1  # threads would split sums differently from run to run
        options.inter_op_num_threads = 1
        options.log_severity_level = 4  # what goes wrong is raised, too
        try:
            self._session = runtime.InferenceSession(
                str(model), sess_options=options, providers=["CPUExecutionProvider"]
            )
            self._tokenizer = tokenizers.Tokenizer.from_file(str(tokenizer))
        except Exception as error:  # noqa: BLE001 - both have their own exceptions
            raise ConfigError(f"{model.parent}: cannot be loaded as a model: {error}") from None
        self._tokenizer.no_padding()
        # As sentence-transformers does: the longer text is truncated.
        self._tokenizer.enable_truncation(max_length=max_length, strategy="longest_first")
        self._inputs = {node.name for node in self._session.get_inputs()}

    def __call__(self, query: str, documents: Sequence[str]) -> Sequence[float]:
        """One logit per document; pairs of equal length share a call, so none is padded."""
        encoded = self._tokenizer.encode_batch([(query, document) for document in documents])
        by_length: dict[int, list[int]] = {}
        for row, encoding in enumerate(encoded):
            by_length.setdefault(len(encoding.ids), []).append(row)
        scores = np.zeros(len(documents))
        for rows in by_length.values():
            pairs = [encoded[row] for row in rows]
            given = {
                "input_ids": [pair.ids for pair in pairs],
                "attention_mask": [pair.attention_mask for pair in pairs],
                "token_type_ids": [pair.type_ids for pair in pairs],
            }
            feeds = {k: np.array(v, dtype=np.int64) for k, v in given.items() if k in self._inputs}
            (logits,) = self._session.run(None, feeds)[:1]
            if logits.size != len(pairs):
                raise ValueError(
                    f"{logits.shape} for {len(pairs)} pairs: a model with one output is needed"
                )
            scores[rows] = logits.reshape(len(pairs))
        return scores.tolist()


@providers.register
class PythonObject(Provider):
    """Any object that follows the protocol (see ``fusion_bench.models.reranker_protocol``).

    The object's own identity and batch apply, not ``space``, ``batch`` and ``max_tokens``.

    Attributes:
        object: ``package.module:name`` of a reranker, or of a class or function that makes one.
    """

    source = "the user"

    method: Literal["python"] = "python"
    object: str
    max_tokens: int | None = None

    @property
    def model_identity(self) -> Identity:
        """The object's own identity."""
        return self._load_object().identity

    @asynccontextmanager
    async def open_reranker(self) -> AsyncIterator[Reranker]:
        """Import the object."""
        yield self._load_object()

    def _load_object(self) -> Reranker:
        module, _, name = self.object.partition(":")
        remedy = (
            ": name the package.module:name of a reranker, or of what makes one without arguments"
        )
        try:
            with user_code("", remedy):
                target = getattr(find_module(module)[0], name)
                is_reranker = hasattr(target, "score") and not isinstance(target, type)
                reranker = target if is_reranker else target()
        except ConfigError as error:
            raise ConfigError(f"object {self.object!r}: {error}") from None
        for needed in ("identity", "batch", "score"):
            if not hasattr(reranker, needed):
                raise ConfigError(f"object {self.object!r}: a reranker needs {needed!r}")
        return cast("Reranker", reranker)


@providers.register
class SentenceTransformers(LocalProvider):
    """Any ``CrossEncoder`` with one output; scores are raw logits.

    Attributes:
        model: Name on the Hugging Face hub, or a local folder.
        device: Such as ``cpu`` or ``cuda``; None = the library's choice.
        max_length: Most tokens of a pair.
    """

    source = "sbert.net cross-encoders"

    method: Literal["sentence_transformers"] = "sentence_transformers"
    device: str | None = None

    @property
    def weights_digest(self) -> str:
        """Digest of the weights in a local folder; empty for a model of the hub."""
        folder = Path(self.model)
        files = sorted(folder.glob("*.safetensors")) + sorted(folder.glob("*.bin"))
        return _hash_files(files) if files else ""

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
