"""Whether a text shows a secret or a piece of it, also in disguise.

Both are compared without regard to capitals, in their plain and in their decoded form (HTML
entities, percent and backslash escapes, lists of character codes), with and without what stands
between letters and digits. The secret is also looked for reversed, in base64, base32, base85,
hexadecimal, octal and ROT13.
"""

from __future__ import annotations

import base64
import codecs
import html
import re
import unicodedata
import urllib.parse
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Final, TypeAlias

#: Characters of a secret in a row that must not be shown in a message; and in what is kept, of
#: which six may be chance.
PIECE: Final = 6
KEPT_PIECE: Final = 8
#: Characters that hold two whole blocks of base85: with nothing before them, or with anything.
BASE85_PIECES: Final = (8, 11)
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
    r"\\+(?:u\{?([0-9a-fA-F]{2,6})\}?|x([0-9a-fA-F]{2})|0*(?P<octal>[0-7]{2,3}))"
    r"|=([0-9a-fA-F]{2})|\b0[xX]([0-9a-fA-F]{2})\b"
)
#: Decimal or octal codes of characters in a row.
_CODES = re.compile(r"(?<!\d)(?:0[oO])?\d{2,6}(?:[^0-9A-Za-z]{1,3}(?:0[oO])?\d{2,6}){5,}(?!\d)")
_NO_LETTERS = re.compile(r"[\W_]+")
#: Characters of a text as they are compared, each with its position in the text.
_View: TypeAlias = Sequence[tuple[str, int]]
#: Length → beginnings of that length → the pieces that begin so.
_Pieces: TypeAlias = Mapping[int, Mapping[str, set[str]]]


class SecretMatcher:
    """Finds a secret in texts.

    Args:
        secret: What must not be shown.
    """

    __slots__ = ("__kept", "__letters", "__shown")

    def __init__(self, secret: str) -> None:
        self.__shown = _list_pieces(secret, PIECE)
        self.__kept = _list_pieces(secret, KEPT_PIECE)
        letters = _keep_letters(_fold(secret))
        self.__letters = (letters, letters[::-1])

    def is_shown_in(self, text: str) -> bool:
        """Whether a message shows the secret or six characters of it."""
        texts = list(_decode_repeatedly(text))
        return _has_piece(texts, self.__shown) or any(map(self._is_spread_over, texts))

    def is_kept_in(self, text: str) -> bool:
        """Whether a text that is kept, and may be long, holds eight characters of the secret."""
        return _has_piece(_decode_repeatedly(text), self.__kept)

    def redact_text(self, text: str) -> str:
        """The text with every piece of eight replaced; all of it where a piece is encoded."""
        if not self.is_kept_in(text):
            return text
        hidden = bytearray(len(text))
        folded = [(c, at) for at, given in enumerate(text) for c in _fold(given)]
        for view in (folded, [pair for pair in folded if pair[0].isalnum()]):
            characters = "".join(character for character, _ in view)
            for start, end in _find_pieces(characters, self.__kept):
                first, last = view[start][1], view[end - 1][1]
                hidden[first : last + 1] = b"\x01" * (last + 1 - first)
        runs = re.finditer(rb"\x01+|\x00+", bytes(hidden))
        clear = "".join(
            REDACTED if hidden[run.start()] else text[run.start() : run.end()] for run in runs
        )
        return REDACTED if self.is_kept_in(clear) else clear

    def _is_spread_over(self, text: str) -> bool:
        """Whether a short text shows the secret in small pieces, or letter by letter."""
        letters = _keep_letters(_fold(text[:SPREAD_TEXT]))
        return any(
            _covered_share(secret, letters) or _is_subsequence(secret, letters)
            for secret in self.__letters
        )


def _list_pieces(secret: str, size: int) -> _Pieces:
    """All pieces of so many characters, in every form; the whole secret where it is shorter."""
    pieces: dict[int, dict[str, set[str]]] = {}
    forms = {form for text in (secret, _keep_letters(secret)) for form in _list_forms(text, size)}
    for form in map(_fold, forms):
        for text in {form, _keep_letters(form)}:
            if len(text) >= size or text == _fold(secret):  # others stand in any text
                pieces.setdefault(min(size, len(text)), {}).setdefault(text[:size], set()).add(text)
    return pieces


def _list_forms(secret: str, size: int) -> Iterator[str]:
    """Each piece of a secret as it may be echoed."""
    for piece in _cut_pieces(secret, min(size, len(secret))):
        raw = piece.encode()
        yield from (piece, piece[::-1], raw.hex(), codecs.encode(piece, "rot13"))
        yield from ("".join(f"{code:o}" for code in raw), "".join(f"{code:03o}" for code in raw))
        yield from _encode_blocks(raw, base64.b64encode, bits=6, block=3)
        yield from _encode_blocks(raw, base64.urlsafe_b64encode, bits=6, block=3)
        yield from _encode_blocks(raw, base64.b32encode, bits=5, block=5)
    for piece in (piece for size in BASE85_PIECES for piece in _cut_pieces(secret, size)):
        for encode in (base64.b85encode, base64.a85encode):
            for shift in range(4):
                whole = encode(b"\0" * shift + piece.encode()).decode()
                yield whole[5 if shift else 0 : (len(piece) + shift) // 4 * 5]


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
        plain = _ESCAPE.sub(_decode_escape, text)
        if _CODES.search(plain):
            yield _CODES.sub(partial(_decode_codes, base=8), plain)
            plain = _CODES.sub(partial(_decode_codes, base=10), plain)
        decoded = html.unescape(urllib.parse.unquote(plain)).replace("\\", "")
        if decoded == text:
            return
        yield (text := decoded)


def _decode_escape(match: re.Match[str]) -> str:
    code, base = (match["octal"], 8) if match["octal"] else (max(filter(None, match.groups())), 16)
    return _to_character(code, base)


def _decode_codes(match: re.Match[str], base: int) -> str:
    codes = re.findall(r"\d+", re.sub("0[oO]", "", match[0]))
    return "".join(_to_character(code, base) for code in codes)


def _to_character(code: str, base: int) -> str:
    """The character of a code; none where it is no code in this base."""
    try:
        return chr(int(code, base))
    except (ValueError, OverflowError):
        return ""


def _fold(text: str) -> str:
    return unicodedata.normalize("NFKC", text).casefold()


def _keep_letters(text: str) -> str:
    return _NO_LETTERS.sub("", text)


def _cut_pieces(text: str, size: int) -> Iterator[str]:
    return (text[start : start + size] for start in range(len(text) - size + 1))


def _find_pieces(text: str, pieces: _Pieces) -> Iterator[tuple[int, int]]:
    """Start and end of each piece in a folded text."""
    for size, by_beginning in pieces.items():
        if by_beginning.keys().isdisjoint(_cut_pieces(text, size)):
            continue
        for start, beginning in enumerate(_cut_pieces(text, size)):
            for piece in by_beginning.get(beginning, ()):
                if text.startswith(piece, start):
                    yield start, start + len(piece)


def _has_piece(texts: Iterable[str], pieces: _Pieces) -> bool:
    """Whether one of the texts shows a piece."""
    folded = map(_fold, texts)
    views = (view for text in folded for view in (text, _keep_letters(text)))
    return any(next(_find_pieces(view, pieces), None) is not None for view in views)


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
