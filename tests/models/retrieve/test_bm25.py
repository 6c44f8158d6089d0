from __future__ import annotations

import math

import numpy as np
import pytest

from fusion_bench.errors import DataError
from fusion_bench.models.retrievers.lexical import BM25Index, stem_texts

DOCUMENTS = {
    "T1": "Scheduled tasks run programs at a given time",
    "T2": "Adversaries dump credentials from memory, dumping them to disk",
    "T3": "Programs in memory",
}


def by_the_formula(query: str, k1: float, b: float) -> list[float]:
    """Lucene's BM25, word by word."""
    documents = stem_texts(list(DOCUMENTS.values()))
    mean = sum(map(len, documents)) / len(documents)
    scores = []
    for document in documents:
        score = 0.0
        for word in stem_texts([query])[0]:
            holders = sum(word in d for d in documents)
            idf = math.log(1 + (len(documents) - holders + 0.5) / (holders + 0.5))
            count = document.count(word)
            score += idf * count / (count + k1 * (1 - b + b * len(document) / mean))
        scores.append(score)
    return scores


@pytest.mark.parametrize(("k1", "b"), [(1.5, 0.75), (0.9, 0.4), (1.2, 0.0)])
def test_scores_follow_the_formula(k1: float, b: float) -> None:
    queries = ["dumped credentials", "a program in memory", "memory memory tasks"]
    index = BM25Index(DOCUMENTS, k1=k1, b=b)
    expected = [by_the_formula(query, k1, b) for query in queries]
    assert index.ids == ("T1", "T2", "T3")
    np.testing.assert_allclose(index.scores(queries), expected, rtol=1e-12)


def test_words_are_matched_by_their_stem() -> None:
    assert BM25Index(DOCUMENTS).scores(["SCHEDULING"])[0].argmax() == 0


@pytest.mark.parametrize("query", ["", "the of", "unheard"])
def test_a_query_without_a_known_word_finds_nothing(query: str) -> None:
    assert BM25Index(DOCUMENTS).scores([query]).tolist() == [[0.0, 0.0, 0.0]]


def test_no_query_gives_no_row() -> None:
    assert BM25Index(DOCUMENTS).scores([]).shape == (0, 3)


@pytest.mark.parametrize("documents", [{}, {"a": "", "b": "the"}])
def test_a_collection_without_words_is_refused(documents: dict[str, str]) -> None:
    with pytest.raises(DataError, match="no word"):
        BM25Index(documents)
