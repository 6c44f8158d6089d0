"""Late interaction over MiniLM's token vectors: a reranker with absolute scores.

Score = mean over the query's tokens of the greatest cosine with a token of the document, negative
ones as 0 (MaxSim, Khattab and Zaharia 2020, "ColBERT", divided by the number of query tokens).
MiniLM was not trained for it: its token vectors are those whose mean is its sentence vector.

As in an index for late interaction, the vectors of documents are made once, before: the times in
the ledger are those of encoding the question and of comparing.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from search import DECIMALS

from fusion_bench.models.encoders.local import load_minilm
from fusion_bench.models.reranker_protocol import Identity, Reply

DOCUMENTS = Path(__file__).parents[1] / "documents.jsonl"


class LateInteraction:
    """The reranker as ``fusion-bench rerank`` calls it."""

    identity = Identity("late-interaction", "minilm-l6-v2-int8 token vectors", "unit")
    batch = 1_000

    def __init__(self) -> None:
        self._encoder = load_minilm()
        lines = DOCUMENTS.read_text(encoding="utf-8").splitlines()
        texts = [f"{row['title']} {row['text']}" for row in map(json.loads, lines)]
        self._known: dict[str, NDArray[np.float32]] = {}
        self._encode_all(texts)

    async def score(self, query: str, documents: Sequence[str]) -> Reply:
        """One score a document, in [0, 1]."""
        [asked] = self._encoder.encode_tokens([query])
        self._encode_all([text for text in documents if text not in self._known])
        tokens = [self._known[text] for text in documents]
        starts = np.cumsum([0, *map(len, tokens[:-1])])
        cosines = np.clip(asked @ np.concatenate(tokens).T, 0, 1)
        scores = np.maximum.reduceat(cosines, starts, axis=1).mean(axis=0)
        return Reply(tuple(round(float(score), DECIMALS) for score in scores))

    def _encode_all(self, texts: Sequence[str]) -> None:
        self._known.update(zip(texts, self._encoder.encode_tokens(texts), strict=True))
