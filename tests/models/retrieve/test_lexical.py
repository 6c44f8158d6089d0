"""Tokens, and BM25 as Lucene and rank-bm25 compute it, word by word."""

import math
import random

import numpy as np
import pytest

from fusion_bench.errors import ConfigError, DataError
from fusion_bench.models.retrieval import rank_by_score
from fusion_bench.models.retrievers.lexical import (
    BM25Index,
    OkapiIndex,
    list_bigrams,
    stem_texts,
    tokenize_texts,
)


@pytest.mark.parametrize(
    ("text", "bigrams"),
    [
        ("焦げカード", ["焦げ", "げカ", "カー", "ード"]),
        ("札", ["札"]),
        ("1番駅から", ["番駅", "駅か", "から"]),
        ("銀匙。火力", ["銀匙", "火力"]),
        ("人々", ["人々"]),
        ("no wide text", []),
        ("", []),
    ],
)
def test_bigrams_are_pairs_within_a_run(text: str, bigrams: list[str]) -> None:
    assert list_bigrams(text) == bigrams


def test_texts_are_split_as_their_tokens_say() -> None:
    assert tokenize_texts(["ＡＢＣの scheduled Tasks", ""], "bigrams") == [
        ["の", "abc", "schedul", "task"],
        [],
    ]
    assert tokenize_texts(["ｶｰﾄﾞ"], "bigrams") == tokenize_texts(["カード"], "bigrams")
    assert tokenize_texts(["The Storm,  moves"], "whitespace") == [["the", "storm,", "moves"]]


def test_japanese_is_found_by_a_part_of_its_text() -> None:
    documents = {
        "a": "焦げカードは手番の終わりに捨てます。",
        "b": "列車コマを終着駅へ進めます。",
        "c": "the storm moves every ship",
    }
    index = BM25Index(documents, tokens="bigrams")
    by_query = index.scores(["焦げはいつ捨てる？", "終着駅に着いたら", "storms", "無関係"])
    assert by_query.argmax(axis=1)[:3].tolist() == [0, 1, 2]
    assert not by_query[3].any()
    # Words between blanks never meet here.
    assert not BM25Index(documents).scores(["焦げはいつ捨てる？"]).any()


@pytest.mark.parametrize("language", ["klingon", ""])
def test_a_language_without_a_stemmer(language: str) -> None:
    with pytest.raises(ConfigError, match=f"language {language!r}: no stemmer"):
        tokenize_texts(["a text"], language=language)


DOCUMENTS = {
    "T1": "Scheduled tasks run programs at a given time",
    "T2": "Adversaries dump credentials from memory, dumping them to disk",
    "T3": "Programs in memory",
}


def by_the_formula(query: str, k1: float, b: float) -> list[float]:
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
    assert BM25Index(DOCUMENTS).scores([]).shape == (0, 3)


@pytest.mark.parametrize("query", ["", "the of", "unheard"])
def test_a_query_without_a_known_word_finds_nothing(query: str) -> None:
    assert BM25Index(DOCUMENTS).scores([query]).tolist() == [[0.0, 0.0, 0.0]]


@pytest.mark.parametrize("documents", [{}, {"a": "", "b": "the"}])
def test_a_collection_without_words_is_refused(documents: dict[str, str]) -> None:
    with pytest.raises(DataError, match="no word"):
        BM25Index(documents)


K1, B, EPSILON = 1.5, 0.75, 0.25


def okapi_by_the_formula(documents: list[str], query: str) -> list[float]:
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


def test_okapi_scores_follow_the_formula() -> None:
    draw = random.Random(5)
    words = ["the", "storm", "Ship", "cards", "dusk", "harbor", "sea", "one"]
    weights = [9, 3, 3, 2, 2, 1, 1, 1]  # the first stands in more than half of the documents
    documents = [" ".join(draw.choices(words, weights, k=draw.randint(1, 9))) for _ in range(30)]
    queries = ["the storm", "ship SHIP cards", "unheard dusk", "", "the"]
    index = OkapiIndex({str(n): text for n, text in enumerate(documents)})
    np.testing.assert_allclose(
        index.scores(queries),
        [okapi_by_the_formula(documents, q) for q in queries],
        rtol=1e-12,
        atol=1e-12,
    )
    assert index.scores([]).shape == (0, 30)


@pytest.mark.parametrize("documents", [{}, {"a": "", "b": "  "}])
def test_okapi_refuses_a_collection_without_words(documents: dict[str, str]) -> None:
    with pytest.raises(DataError, match="no word"):
        OkapiIndex(documents)


def test_equal_scores_are_ranked_from_the_last_row() -> None:
    scores = np.array([0.0, 2.0, 0.0, 1.0, 0.0])
    assert rank_by_score(scores, depth=4).tolist() == [1, 3, 4, 2]
    assert rank_by_score(scores, depth=4, above=0.0).tolist() == [1, 3]
