"""A cross-encoder as ONNX, from a local folder."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar, Literal

import numpy as np

from fusion_bench.errors import ConfigError
from fusion_bench.rerank.clients._base import providers
from fusion_bench.rerank.clients._local import LocalProvider, PairScorer, hash_files
from fusion_bench.util.optional_imports import import_optional


@providers.register
class OnnxCrossEncoder(LocalProvider):
    """A model with one logit for a pair of query and document, on one CPU thread.

    Attributes:
        folder: Holds ``model.onnx`` (or ``onnx/model.onnx``) and ``tokenizer.json``.
        max_length: Most tokens of a pair; the longer of its two texts is truncated.
    """

    source: ClassVar[str] = "sbert.net cross-encoders"

    method: Literal["onnx"] = "onnx"
    folder: Path

    @property
    def weights_digest(self) -> str:
        """Digest of model and tokenizer."""
        return hash_files(self._model_files())

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
