"""Normalized texts, and proposals against all pairs."""

from __future__ import annotations

import warnings
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fusion_bench.data.query_groups import MAX_BUCKET, jaccard_index, normalize_text, propose_pairs

THINGS = "salt ship lantern market barrel tide keeper guild harbor vine copper apple"


def slow_jaccard(first: str, second: str) -> float:
    one, other = (
        {padded[i : i + 3] for i in range(len(padded) - 2)}
        for padded in (f" {text} " for text in (first, second))
    )
    return len(one & other) / len(one | other)


@pytest.mark.parametrize(
    ("text", "normalized"),
    [
        ("How  to reset: my Password?", "how to reset my password"),
        ("ＳＴＲＡＳＳＥ №1", "strasse no1"),
        ("Straße", "strasse"),
        ("東京の・天気", "東京の 天気"),
        ("?!", ""),
    ],
)
def test_normalized_texts(text: str, normalized: str) -> None:
    assert normalize_text(text) == normalized


@settings(max_examples=60)
@given(st.text(min_size=1, max_size=12), st.text(min_size=1, max_size=12))
def test_jaccard_index_is_that_of_the_sets(first: str, second: str) -> None:
    assert jaccard_index(first, second) == pytest.approx(slow_jaccard(first, second))


def test_pairs_of_similar_texts_are_proposed_and_most_others_are_not() -> None:
    random = np.random.default_rng(1)
    texts = [" ".join(random.choice(THINGS.split(), 6, replace=False)) for _ in range(150)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        proposed = {(a, b) for a, b in propose_pairs(texts).tolist()}
    similar = {
        (a, b) for a, b in combinations(range(150), 2) if slow_jaccard(texts[a], texts[b]) >= 0.5
    }
    assert len(similar) > 100
    assert len(similar - proposed) <= 0.02 * len(similar)
    assert all(a < b for a, b in proposed)


@pytest.mark.parametrize("texts", [[], ["one"]])
def test_one_text_has_no_pair(texts: list[str]) -> None:
    assert propose_pairs(texts).shape == (0, 2)


def test_a_phrase_that_many_share_is_no_copy() -> None:
    texts = ["a"] * (MAX_BUCKET + 1)
    assert propose_pairs(texts).shape == (0, 2)
    assert len(propose_pairs(texts[:20])) == 190
