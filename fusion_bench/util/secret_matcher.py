"""Whether a text shows a secret or a piece of it, also in disguise.

Both are compared without regard to capitals, in their plain and in their decoded form (HTML
entities, percent and backslash escapes, lists of character codes), with and without what stands
between letters and digits. The secret is also looked for reversed, in base64, base32, hexadecimal
and ROT13.
"""

from __future__ import annotations

import base64
import codecs
import html
import re
import unicodedata
import urllib.parse
from collections.abc import Callable, Iterator, Sequence
from typing import Final, TypeAlias

#: Characters of a secret that must not be shown in a row.
PIECE: Final = 6
#: Shorter pieces count where together they make up this many characters, and half of the secret.
SMALL_PIECE: Final = 4
SMALL_PIECES: Final = 8
#: A secret this long is also looked for letter by letter, in texts up to this length; in a longer
#: text any letters stand in any order.
SPREAD_SECRET: Final = 16
SPREAD_TEXT: Final = 200
#: An escape may hold another one.
DECODINGS: Final = 2
#: Replaces a piece of a secret.
REDACTED: Final = "[key]"

_ESCAPE = re.compile(
    r"\\+(?:u\{?([0-9a-fA-F]{2,6})\}?|x([0-9a-fA-F]{2})|(?P<octal>[0-7]{2,3}))"
    r"|=([0-9a-fA-F]{2})|\b0[xX]([0-9a-fA-F]{2})\b"
)
#: Decimal codes of characters in a row.
_CODES = re.compile(r"\b\d{2,3}(?:[^0-9A-Za-z]{1,3}\d{2,3}){5,}\b")
#: Characters of a text as they are compared, each with its position in the text.
_View: TypeAlias = Sequence[tuple[str, int]]


class SecretMatcher:
    """Finds a secret in texts.

    Args:
        secret: What must not be shown.
    """

    __slots__ = ("__letters", "__pieces")

    def __init__(self, secret: str) -> None:
        self.__pieces: dict[int, set[str]] = {}
        for form in map(_fold, _encode_forms(secret)):
            for text in {form, _keep_letters(form)}:
                if len(text) < PIECE and text != _fold(secret):
                    continue  # a piece that stands in any text
                size = min(PIECE, len(text))
                self.__pieces.setdefault(size, set()).update(_cut_pieces(text, size))
        letters = _keep_letters(_fold(secret))
        self.__letters = (letters, letters[::-1])

    def is_shown_in(self, text: str) -> bool:
        """Whether a text shows the secret or a piece of it."""
        texts = list(_decode_repeatedly(text))
        return any(map(self._has_piece, texts)) or any(map(self._is_spread_over, texts))

    def redact_text(self, text: str) -> str:
        """The text with every piece of the secret replaced; all of it where a piece is encoded."""
        if not any(map(self._has_piece, _decode_repeatedly(text))):
            return text
        hidden = bytearray(len(text))
        for start, end in self._find_pieces(text):
            hidden[start:end] = b"\x01" * (end - start)
        runs = re.finditer(rb"\x01+|\x00+", bytes(hidden))
        clear = "".join(
            REDACTED if hidden[run.start()] else text[run.start() : run.end()] for run in runs
        )
        return REDACTED if any(map(self._has_piece, _decode_repeatedly(clear))) else clear

    def _has_piece(self, text: str) -> bool:
        folded = _fold(text)
        return any(
            not pieces.isdisjoint(_cut_pieces(view, size))
            for view in (folded, _keep_letters(folded))
            for size, pieces in self.__pieces.items()
        )

    def _find_pieces(self, text: str) -> Iterator[tuple[int, int]]:
        """Start and end of each piece in the text."""
        folded = [(c, at) for at, given in enumerate(text) for c in _fold(given)]
        for view in (folded, [pair for pair in folded if pair[0].isalnum()]):
            characters = "".join(character for character, _ in view)
            for size, pieces in self.__pieces.items():
                for start, piece in enumerate(_cut_pieces(characters, size)):
                    if piece in pieces:
                        yield view[start][1], view[start + size - 1][1] + 1

    def _is_spread_over(self, text: str) -> bool:
        """Whether a short text shows the secret in small pieces, or letter by letter."""
        letters = _keep_letters(_fold(text[:SPREAD_TEXT]))
        return any(
            _covered_share(secret, letters) or _is_subsequence(secret, letters)
            for secret in self.__letters
        )


def _encode_forms(secret: str) -> set[str]:
    """The secret as it may be echoed."""
    raw = secret.encode()
    forms = {secret, secret[::-1], raw.hex(), codecs.encode(secret, "rot13")}
    forms.update(_encode_blocks(raw, base64.b64encode, bits=6, block=3))
    forms.update(_encode_blocks(raw, base64.urlsafe_b64encode, bits=6, block=3))
    forms.update(_encode_blocks(raw, base64.b32encode, bits=5, block=5))
    return forms


def _encode_blocks(
    raw: bytes, encode: Callable[[bytes], bytes], bits: int, block: int
) -> Iterator[str]:
    """The whole characters of an encoding, which depends on the number of bytes before."""
    for shift in range(block):
        whole = encode(b"\0" * shift + raw).decode().rstrip("=")
        partial = (len(raw) + shift) * 8 % bits != 0
        yield whole[-(-8 * shift // bits) : len(whole) - partial]


def _decode_repeatedly(text: str) -> Iterator[str]:
    """The text, and what its escapes stand for."""
    yield text
    for _ in range(DECODINGS):
        plain = _CODES.sub(_decode_codes, _ESCAPE.sub(_decode_escape, text))
        decoded = html.unescape(urllib.parse.unquote(plain)).replace("\\", "")
        if decoded == text:
            return
        yield (text := decoded)


def _decode_escape(match: re.Match[str]) -> str:
    octal = match["octal"]
    code = int(octal, 8) if octal else int(next(filter(None, match.groups())), 16)
    return chr(code) if code <= 0x10FFFF else ""


def _decode_codes(match: re.Match[str]) -> str:
    return "".join(chr(int(code)) for code in re.findall(r"\d+", match[0]))


def _fold(text: str) -> str:
    return unicodedata.normalize("NFKC", text).casefold()


def _keep_letters(text: str) -> str:
    return "".join(filter(str.isalnum, text))


def _cut_pieces(text: str, size: int) -> Iterator[str]:
    return (text[start : start + size] for start in range(len(text) - size + 1))


def _covered_share(secret: str, letters: str) -> bool:
    """Whether small pieces of the secret in a text make up half of it."""
    covered: set[int] = set()
    for start, piece in enumerate(_cut_pieces(secret, SMALL_PIECE)):
        if piece in letters:
            covered.update(range(start, start + SMALL_PIECE))
    return len(covered) >= max(SMALL_PIECES, len(secret) / 2)


def _is_subsequence(secret: str, letters: str) -> bool:
    remaining = iter(letters)
    return len(secret) >= SPREAD_SECRET and all(letter in remaining for letter in secret)
