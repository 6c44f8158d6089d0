"""Texts to tokens: stemmed words, words between blanks, or bigrams of characters."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from typing import Final, Literal, TypeAlias

from fusion_bench.errors import ConfigError
from fusion_bench.retrieve.common import import_extra

#: ``stem``: stemmed words. ``whitespace``: lower case, split at blanks. ``bigrams``: pairs of
#: neighboring characters in Chinese, Japanese and Korean, stemmed words in the rest of the text.
Tokens: TypeAlias = Literal["stem", "whitespace", "bigrams"]

#: Scripts without blanks between words: kana, Han, Hangul, their compatibility forms and marks.
_WIDE: Final = (
    "\u3005-\u3007\u3041-\u3096\u309d-\u30fa\u30fc-\u30ff"
    "\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff"
)
_WIDE_RUN: Final = re.compile(rf"[{_WIDE}]+")


def tokenize_texts(
    texts: Sequence[str], tokens: Tokens = "stem", *, language: str = "english"
) -> list[list[str]]:
    """Tokens of each text.

    Args:
        texts: One string a text.
        tokens: What a token is, see :data:`Tokens`.
        language: Snowball stemmer and stopword list, as PyStemmer and bm25s name them.

    Raises:
        ConfigError: There is no stemmer for the language.
        MissingExtraError: bm25s or PyStemmer is not installed, and words are stemmed.
    """
    if tokens == "whitespace":
        return [text.lower().split() for text in texts]
    if tokens == "stem":
        return stem_texts(texts, language=language)
    plain = [unicodedata.normalize("NFKC", text) for text in texts]
    words = stem_texts([_WIDE_RUN.sub(" ", text) for text in plain], language=language)
    return [[*pairs, *rest] for pairs, rest in zip(map(list_bigrams, plain), words, strict=True)]


def stem_texts(texts: Sequence[str], *, language: str = "english") -> list[list[str]]:
    """Tokens of each text: lower case, words of two letters or more, stopwords out, stemmed.

    Arguments and errors as for :func:`tokenize_texts`.
    """
    bm25s = import_extra("bm25s", purpose="tokenizing for BM25")
    library = import_extra("Stemmer", purpose="stemming")
    try:
        stemmer = library.Stemmer(language)
        tokens: list[list[str]] = bm25s.tokenize(
            list(texts), stopwords=language, stemmer=stemmer, return_ids=False, show_progress=False
        )
    except (KeyError, ValueError):
        raise ConfigError(
            f"language {language!r}: no stemmer and stopword list of that name, such as english, "
            "french or german"
        ) from None
    return tokens


def list_bigrams(text: str) -> list[str]:
    """Pairs of neighboring characters in every run of Chinese, Japanese or Korean.

    A run of one character is a token itself, as in Lucene's CJKBigramFilter.
    """
    return [run[i : i + 2] for run in _WIDE_RUN.findall(text) for i in range(max(1, len(run) - 1))]
