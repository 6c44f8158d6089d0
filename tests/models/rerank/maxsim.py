"""A real reranker for the loopback server: late interaction over MiniLM's token vectors.

MaxSim (Khattab & Zaharia 2020): every token of the query takes its best match among the tokens of
the document, and the mean of those is the score. MiniLM was not trained for it, so it is no good
reranker; but its scores are a model's, not made up.
"""

from __future__ import annotations

import threading
from functools import cache

import numpy as np
from numpy.typing import NDArray

from fusion_bench.models.encoders.local import load_minilm

LONGEST = 48


class MaxSim:
    """Scores in [0, 1], computed where no server is in between as well."""

    def __init__(self) -> None:
        self._encoder = load_minilm(LONGEST)
        self._lock = threading.Lock()
        self._known: dict[str, NDArray[np.float32]] = {}

    def vectors(self, text: str) -> NDArray[np.float32]:
        """Token vectors of length one."""
        if text not in self._known:
            [self._known[text]] = self._encoder.encode_tokens([text])
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
