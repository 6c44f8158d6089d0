"""Cutting documents to a number of tokens before they are sent and paid for."""

from __future__ import annotations

import hashlib
import re
from functools import cached_property
from pathlib import Path

from fusion_bench.errors import DataError
from fusion_bench.util.optional_imports import import_optional

__all__ = ["Truncation", "approximate_tokens"]

#: Scripts that are written without blanks have about one token a character.
_WIDE = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff"
#: A wide character, up to four others of a word, or a mark.
_TOKEN = re.compile(rf"[{_WIDE}]|[^\W{_WIDE}]{{1,4}}|[^\w\s]")


class Truncation:
    """Cuts texts at a number of tokens.

    Args:
        tokens: At most so many; None = never cut.
        tokenizer: A ``tokenizer.json`` that counts them; by default they are estimated: a word is
            a token for every four letters begun, a mark one, a Chinese, Japanese or Korean
            character one. That is more than most tokenizers count, so nothing is sent that the
            provider would cut again.
    """

    def __init__(self, tokens: int | None, tokenizer: Path | None = None) -> None:
        self.tokens = tokens
        self._path = tokenizer

    @property
    def label(self) -> str:
        """How texts are cut, as part of what a score depends on."""
        if self.tokens is None:
            return "none"
        return f"{self.tokens} tokens, {self._tokenizer_label}"

    @cached_property
    def _tokenizer_label(self) -> str:
        if self._path is None:
            return "estimated"
        try:
            return f"sha256 {hashlib.sha256(self._path.read_bytes()).hexdigest()[:16]}"
        except OSError as error:
            raise DataError(f"{self._path}: cannot be read ({error.strerror})") from None

    @cached_property
    def _token_offsets(self):  # type: ignore[no-untyped-def] # noqa: ANN202 - tokenizers has no types
        tokenizers = import_optional("tokenizers", extra="local", purpose="counting tokens")
        self._tokenizer_label  # noqa: B018 - says so if the file is not there
        loaded = tokenizers.Tokenizer.from_file(str(self._path))
        loaded.no_truncation()
        loaded.no_padding()
        return lambda text: loaded.encode(text, add_special_tokens=False).offsets

    def token_ends(self, text: str) -> list[int]:
        """Where each token of a text ends, in characters."""
        if self._path is None:
            return [match.end() for match in _TOKEN.finditer(text)]
        return [end for _, end in self._token_offsets(text)]

    def __call__(self, text: str) -> str:
        """The text up to its last token that fits."""
        # No token is shorter than a character, so a short text needs no counting.
        if self.tokens is None or len(text) <= self.tokens:
            return text
        ends = self.token_ends(text)
        return text if len(ends) <= self.tokens else text[: ends[self.tokens - 1]]


def approximate_tokens(text: str) -> int:
    """Tokens of a text as they are estimated, for prices beforehand."""
    return sum(1 for _ in _TOKEN.finditer(text))
