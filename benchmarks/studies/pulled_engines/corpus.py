"""Texts with vectors that engines index, and queries with vectors that they are asked."""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Corpus:
    """What is indexed, and what is asked.

    Attributes:
        texts: Document id → text.
        vectors: Shape (N, H), in the order of ``texts``; of length one.
        queries: Query id → text.
        query_vectors: Shape (Q, H), in the order of ``queries``; of length one.
    """

    texts: Mapping[str, str]
    vectors: NDArray[np.float32]
    queries: Mapping[str, str]
    query_vectors: NDArray[np.float32]

    @property
    def width(self) -> int:
        """Numbers of a vector."""
        return int(self.vectors.shape[1])

    def write_queries(self, folder: Path) -> tuple[Path, Path]:
        """Write ``queries.jsonl`` and ``vectors.npz``, as ``pull`` reads them."""
        queries, vectors = folder / "queries.jsonl", folder / "vectors.npz"
        lines = [json.dumps({"id": name, "text": text}) for name, text in self.queries.items()]
        queries.write_text("\n".join(lines) + "\n", encoding="utf-8")
        np.savez(vectors, query_ids=np.array([*self.queries]), query=self.query_vectors)
        return queries, vectors


def read_nfcorpus(folder: Path) -> Corpus:
    """NFCorpus with the vectors of all-MiniLM-L6-v2; its 323 judged test queries."""
    with gzip.open(folder / "corpus.jsonl.gz", "rt", encoding="utf-8") as lines:
        documents = [json.loads(line) for line in lines]
    texts = {item["_id"]: f"{item['title']}\n{item['text']}".strip() for item in documents}
    qrels = (folder / "qrels" / "test.trec").read_text(encoding="utf-8").splitlines()
    judged = {line.split()[0] for line in qrels}
    rows = (folder / "queries.jsonl").read_text(encoding="utf-8").splitlines()
    items = [json.loads(row) for row in rows]
    queries = {item["_id"]: item["text"] for item in items if item["_id"] in judged}
    with np.load(folder / "minilm_embeddings_f16.npz") as stored:
        vectors = dict(zip(stored["doc_ids"].tolist(), stored["doc"], strict=True))
        asked = dict(zip(stored["query_ids"].tolist(), stored["query"], strict=True))
    return Corpus(
        texts,
        np.array([vectors[name] for name in texts], dtype=np.float32),
        queries,
        np.array([asked[name] for name in queries], dtype=np.float32),
    )


def make_corpus(documents: int, queries: int, *, width: int = 16, seed: int = 5) -> Corpus:
    """A made corpus: few words, so that lists are long and equal scores frequent.

    Args:
        documents: Number of documents.
        queries: Number of queries, of two or three words each.
        width: Numbers of a vector: the mean of its words' vectors.
        seed: Of the random numbers.
    """
    random = np.random.default_rng(seed)
    letters = "bcdfghjklmnp"
    words = [f"{a}u{b}a{c}" for a in letters for b in letters[:4] for c in letters[:4]]
    directions = random.normal(size=(len(words), width))
    shares = 1 / np.arange(3, len(words) + 3)

    def draw(lengths: tuple[int, int], count: int) -> tuple[list[str], NDArray[np.float32]]:
        texts, vectors = [], np.empty((count, width), dtype=np.float32)
        for row in range(count):
            drawn = random.choice(
                len(words), size=random.integers(*lengths), p=shares / shares.sum()
            )
            texts.append(" ".join(words[n] for n in drawn))
            mean = directions[drawn].mean(axis=0) + 0.2 * random.normal(size=width)
            vectors[row] = mean / np.linalg.norm(mean)
        return texts, vectors

    texts, vectors = draw((5, 30), documents)
    asked, query_vectors = draw((2, 4), queries)
    return Corpus(
        {f"doc-{n}": text for n, text in enumerate(texts)},
        vectors,
        {f"query-{n}": text for n, text in enumerate(asked)},
        query_vectors,
    )
