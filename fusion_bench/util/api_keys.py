"""API keys, which no log, report, traceback or quoted text of a server shows.

Both are compared without regard to capitals, in their plain and in their decoded form (HTML
entities, percent and backslash escapes, lists of character codes), with and without what stands
between letters and digits. The secret is also looked for reversed, in base64, base32, base85,
hexadecimal, octal and ROT13.
"""

from __future__ import annotations

import base64
import codecs
import html
import logging
import os
import re
import unicodedata
import urllib.parse
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Any, Final, NoReturn, TypeAlias

from fusion_bench.errors import ConfigError

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
        letters = (_keep_letters(_fold(each[:SPREAD_TEXT])) for each in texts)
        return _has_piece(texts, self.__shown) or any(
            _covered_share(secret, short) or _is_subsequence(secret, short)
            for short in letters
            for secret in self.__letters
        )

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


#: A name that nobody takes for a key: words of capitals, such as ``JINA_API_KEY``.
_VARIABLE: Final = re.compile(r"[A-Z]{2,12}(_([A-Z]{1,12}|[0-9]{1,3}))*")


class ApiKey:
    """An API key that only requests can read.

    Args:
        value: The key.
        name: The environment variable that holds it.
    """

    __slots__ = ("__value", "matcher", "name")

    def __init__(self, value: str, *, name: str) -> None:
        self.__value = value
        self.name = name
        self.matcher = SecretMatcher(value)

    @classmethod
    def from_environment(cls, name: str) -> ApiKey:
        """The key in an environment variable.

        Raises:
            ConfigError: It is not set, is empty or too short, or is no valid header value.
        """
        value = os.environ.get(name, "").strip()
        if not value and not _VARIABLE.fullmatch(name):
            raise ConfigError(
                "the environment variable that 'key' names is not set, and its name is not shown, "
                "as it may be the key itself: give the name of a variable, such as MY_API_KEY, and "
                "set that to the API key"
            )
        if not value:
            raise ConfigError(
                f"the environment variable {name} is not set: set it to the API key, or write "
                "'key: null' for a server that needs none"
            )
        return cls.of_value(value, f"the environment variable {name}", name=name)

    @classmethod
    def of_value(cls, value: str, where: str, *, name: str = "API key") -> ApiKey:
        """The key itself.

        Args:
            value: The key.
            where: Where it stands, for an error.
            name: What is shown of it.

        Raises:
            ConfigError: It is too short, or is no valid header value.
        """
        if not value.isascii() or not value.isprintable() or " " in value:
            raise ConfigError(f"{where} is no API key: only ASCII without blanks")
        if len(value) < KEPT_PIECE:  # it could be part of any text, so no answer could be kept
            raise ConfigError(
                f"{where} has {len(value)} characters, and an API key has at least {KEPT_PIECE}: "
                "set it to the key, or write 'key: null' for a server that needs none"
            )
        return cls(value, name=name)

    def is_shown_in(self, text: str) -> bool:
        """Whether a message may show it."""
        return self.matcher.is_shown_in(text)

    def reveal_key(self) -> str:
        """The key itself, for a request."""
        return self.__value

    def __repr__(self) -> str:
        return f"ApiKey({self.name})"

    def __reduce__(self) -> NoReturn:
        raise TypeError("an API key cannot be pickled")


#: Most characters of a message or a name that are shown.
MAX_SHOWN: Final = 200
#: Characters that are looked through for the key; a server writes more only to hide it.
MAX_CHECKED: Final = 4_000
#: Stands in place of a text that may hold the key.
NOT_SHOWN: Final = "(not shown: it resembles the API key)"
#: Stands before what was hidden in an answer; a character that no text holds (Unicode 23.7).
MARK: Final = "\ufdd0"
HIDDEN: Final = f"{MARK}{REDACTED}"
#: The loggers of httpx that repeat what a server wrote.
_LOGGERS: Final = ("httpx", "httpcore.connection", "httpcore.http11", "httpcore.proxy")


def show_text(text: str, key: ApiKey | None) -> str | None:
    """A server's text on one line: letters, digits and ASCII marks, and not too long.

    Args:
        text: The text.
        key: The key that must not be shown; None = the server got none.

    Returns:
        The text; None where it resembles the key.
    """
    checked = text[:MAX_CHECKED]
    if key is not None and (MARK in checked or key.is_shown_in(checked)):
        return None
    allowed = "".join(
        c if c.isalnum() or (c.isascii() and c.isprintable()) else " " for c in checked
    )
    line = " ".join(allowed.split())
    return line if len(line) <= MAX_SHOWN else f"{line[: MAX_SHOWN - 3]}..."


def hide_key(data: Any, key: ApiKey | None) -> Any:  # noqa: ANN401 - JSON
    """A JSON value without the key: every text, name of a field and whole number that shows it.

    What is hidden leaves :data:`MARK`, so that :func:`hidden_reason` finds it. Double encodings and
    compressed copies are not found.

    Args:
        data: An answer, as it was parsed.
        key: The key that the server got; None = none.
    """
    if key is None:
        return data
    texts: list[str] = []
    values = [data]
    while values:
        value = values.pop()
        if isinstance(value, dict):
            texts.extend(value)
            values.extend(value.values())
        elif isinstance(value, list):
            values.extend(value)
        elif isinstance(value, str | int):
            texts.append(str(value))
    # One look at all texts: most answers show nothing.
    return _hide_texts(data, key) if key.matcher.is_kept_in("\n".join(texts)) else data


def hidden_reason(text: object) -> str | None:
    """Why a text of an answer is not what the server sent; None = it is."""
    if not isinstance(text, str) or MARK not in text:
        return None
    return "it shows the API key, or eight characters of it"


def _hide_texts(data: Any, key: ApiKey) -> Any:  # noqa: ANN401 - JSON
    if isinstance(data, dict):
        return {_hide_text(name, key): _hide_texts(value, key) for name, value in data.items()}
    if isinstance(data, list):
        return [_hide_texts(value, key) for value in data]
    if isinstance(data, str):
        return _hide_text(data, key)
    is_shown = isinstance(data, int) and key.matcher.is_kept_in(str(data))
    return HIDDEN if is_shown else data


def _hide_text(text: str, key: ApiKey) -> str:
    return (
        key.matcher.redact_text(text).replace(REDACTED, HIDDEN)
        if key.matcher.is_kept_in(text)
        else text
    )


class LogGuard(logging.Filter):
    """Keeps a key out of the records of httpx's loggers, from ``install`` to ``remove``.

    At level ``DEBUG`` these repeat a response's headers, at ``INFO`` the reason of its status.

    Args:
        key: The key; None = there is none.
    """

    def __init__(self, key: ApiKey | None) -> None:
        super().__init__()
        self._key = key

    def filter(self, record: logging.LogRecord) -> bool:
        """Replace a message that resembles the key; no record is dropped."""
        if self._key is not None and self._key.is_shown_in(record.getMessage()):
            record.msg, record.args, record.exc_info = NOT_SHOWN, (), None
        return True

    def install(self) -> None:
        """Begin to look at the records."""
        for name in _LOGGERS:
            logging.getLogger(name).addFilter(self)

    def remove(self) -> None:
        """Look at no further record."""
        for name in _LOGGERS:
            logging.getLogger(name).removeFilter(self)
