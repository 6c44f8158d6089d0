from __future__ import annotations

import pytest

from fusion_bench.errors import ConfigError
from fusion_bench.models.retrievers.lexical import BM25Index, list_bigrams, tokenize_texts


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


def test_the_rest_of_a_text_is_stemmed_words() -> None:
    assert tokenize_texts(["ＡＢＣの scheduled Tasks", ""], "bigrams") == [
        ["の", "abc", "schedul", "task"],
        [],
    ]


def test_half_width_kana_are_those_of_full_width() -> None:
    assert tokenize_texts(["ｶｰﾄﾞ"], "bigrams") == tokenize_texts(["カード"], "bigrams")


def test_whitespace_tokens_keep_punctuation() -> None:
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
