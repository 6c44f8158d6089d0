"""rank-bm25's ``BM25Okapi``, word by word."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest

from fusion_bench.errors import DataError
from fusion_bench.models.retrieval import rank_by_score
from fusion_bench.models.retrievers.lexical import OkapiIndex

K1, B, EPSILON = 1.5, 0.75, 0.25


def oracle(documents: list[str], query: str) -> list[float]:
    texts = [document.lower().split() for document in documents]
    mean_length = sum(map(len, texts)) / len(texts)
    weights = {}
    for word in {word for text in texts for word in text}:
        holders = sum(word in text for text in texts)
        weights[word] = math.log(len(texts) - holders + 0.5) - math.log(holders + 0.5)
    floor = EPSILON * sum(weights.values()) / len(weights)
    scores = []
    for text in texts:
        score = 0.0
        for word in query.lower().split():
            if word not in weights:
                continue
            weight = floor if weights[word] < 0 else weights[word]
            count = text.count(word)
            length = 1 - B + B * len(text) / mean_length
            score += weight * count * (K1 + 1) / (count + K1 * length)
        scores.append(score)
    return scores


def test_scores_follow_the_formula() -> None:
    draw = random.Random(5)
    words = ["the", "storm", "Ship", "cards", "dusk", "harbor", "sea", "one"]
    weights = [9, 3, 3, 2, 2, 1, 1, 1]  # the first stands in more than half of the documents
    documents = [" ".join(draw.choices(words, weights, k=draw.randint(1, 9))) for _ in range(30)]
    queries = ["the storm", "ship SHIP cards", "unheard dusk", "", "the"]
    index = OkapiIndex({str(n): text for n, text in enumerate(documents)})
    np.testing.assert_allclose(
        index.scores(queries), [oracle(documents, q) for q in queries], rtol=1e-12, atol=1e-12
    )
    assert index.scores([]).shape == (0, 30)


@pytest.mark.parametrize("documents", [{}, {"a": "", "b": "  "}])
def test_a_collection_without_words_is_refused(documents: dict[str, str]) -> None:
    with pytest.raises(DataError, match="no word"):
        OkapiIndex(documents)


def test_equal_scores_are_ranked_from_the_last_row() -> None:
    scores = np.array([0.0, 2.0, 0.0, 1.0, 0.0])
    assert rank_by_score(scores, depth=4).tolist() == [1, 3, 4, 2]
    assert rank_by_score(scores, depth=4, above=0.0).tolist() == [1, 3]
