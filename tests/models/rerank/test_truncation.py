"""Documents are cut at tokens, estimated or counted."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer, models, pre_tokenizers

from fusion_bench.errors import DataError
from fusion_bench.models.reranker_protocol import Truncation, approximate_tokens


def test_documents_are_cut_at_tokens() -> None:
    assert Truncation(None)("a b c") == "a b c"
    assert Truncation(2)("one, two") == "one,"
    assert Truncation(2)("検索結果") == "検索"
    assert Truncation(3)("relevance") == "relevance"
    assert Truncation(2)("relevance") == "relevanc"
    assert approximate_tokens("") == 0
    assert Truncation(2048).label == "2048 tokens, estimated"
    assert Truncation(None).label == "none"


@given(st.text(max_size=60), st.integers(1, 20))
def test_what_is_kept_is_a_beginning_that_fits(text: str, tokens: int) -> None:
    kept = Truncation(tokens)(text)
    assert text.startswith(kept)
    assert approximate_tokens(kept) <= tokens
    if approximate_tokens(text) <= tokens:
        assert kept == text


def test_a_tokenizer_counts_exactly(tmp_path: Path) -> None:
    path = tmp_path / "tokenizer.json"
    words = Tokenizer(models.WordLevel({"[UNK]": 0, "a": 1}, unk_token="[UNK]"))  # noqa: S106
    words.pre_tokenizer = pre_tokenizers.Whitespace()
    words.enable_padding(length=9)
    words.save(str(path))
    cut = Truncation(2, path)
    assert cut("incomprehensibilities a b") == "incomprehensibilities a"
    assert cut.label.startswith("2 tokens, sha256 ")
    with pytest.raises(DataError, match=r"none\.json"):
        _ = Truncation(2, tmp_path / "none.json").label
