"""Truncation of documents to a number of tokens, before they are sent."""

from __future__ import annotations

import hashlib
import re
from functools import cached_property
from pathlib import Path

from fusion_bench.errors import DataError
from fusion_bench.util.files.regular_files import read_regular
from fusion_bench.util.optional_imports import import_optional

#: Scripts written without blanks have about one token per character.
_WIDE = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff"
#: A wide character, up to four others of a word, or a mark.
_TOKEN = re.compile(rf"[{_WIDE}]|[^\W{_WIDE}]{{1,4}}|[^\w\s]")


class Truncation:
    """Truncates texts to a number of tokens.

    Args:
        tokens: Most tokens; None = no limit.
        tokenizer: A ``tokenizer.json`` that counts them. Without it the number is estimated: one
            per four letters of a word, one per punctuation mark, one per Chinese, Japanese or
            Korean character. Most tokenizers count fewer.
    """

    def __init__(self, tokens: int | None, tokenizer: Path | None = None) -> None:
        self.tokens = tokens
        self._path = tokenizer

    @property
    def label(self) -> str:
        """How texts are truncated, as part of a model's identity."""
        return "none" if self.tokens is None else f"{self.tokens} tokens, {self._tokenizer_label}"

    @cached_property
    def _tokenizer_label(self) -> str:
        if self._path is None:
            return "estimated"
        try:
            return f"sha256 {hashlib.sha256(read_regular(self._path)).hexdigest()[:16]}"
        except OSError as error:
            raise DataError(f"{self._path}: cannot be read ({error.strerror})") from None

    @cached_property
    def _loaded_tokenizer(self):  # type: ignore[no-untyped-def] # noqa: ANN202 - tokenizers has no types
        tokenizers = import_optional("tokenizers", extra="local", purpose="counting tokens")
        self._tokenizer_label  # noqa: B018 - raises if the file is missing
        loaded = tokenizers.Tokenizer.from_file(str(self._path))
        loaded.no_truncation()
        loaded.no_padding()
        return loaded

    def __call__(self, text: str) -> str:
        """The text up to its last token that fits."""
        # A token has at least one character.
        if self.tokens is None or len(text) <= self.tokens:
            return text
        if self._path is None:
            ends = [match.end() for match in _TOKEN.finditer(text)]
        else:
            encoding = self._loaded_tokenizer.encode(text, add_special_tokens=False)
            ends = [end for _, end in encoding.offsets]
        return text if len(ends) <= self.tokens else text[: ends[self.tokens - 1]]


def approximate_tokens(text: str) -> int:
    """Estimated number of tokens of a text."""
    return sum(1 for _ in _TOKEN.finditer(text))
