"""SHA-256 over several values, or over a line of a file.

Every value is framed: its kind, its number of bytes, its bytes. A list of texts states the length
of each, so that a separator inside a text moves nothing.

A digest of this module finds accidents and edits by hand. It is no signature: who can write a file
can compute its digests, too.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Hashable: TypeAlias = "str | int | bytes | None | NDArray[np.generic] | Iterable[str]"


def hash_values(*values: Hashable) -> str:
    """SHA-256 over values, hexadecimal.

    Args:
        values: Text, a whole number, bytes, None, an array of numbers (all integers count as
            64-bit ones, all others as 64-bit floats), or several texts.

    >>> hash_values(["a", "b-c"]) == hash_values(["a-b", "c"])
    False
    """
    sha = hashlib.sha256()
    for value in values:
        kind, data = _encode(value)
        sha.update(kind + len(data).to_bytes(8, "little"))
        sha.update(data)
    return sha.hexdigest()


def _encode(value: Hashable) -> tuple[bytes, bytes]:
    """The kind of a value, one letter, and its bytes."""
    if value is None:
        return b"n", b""
    if isinstance(value, str):
        return b"s", value.encode("utf-8", "surrogatepass")
    if isinstance(value, bytes):
        return b"b", value
    if isinstance(value, int):
        return b"i", str(int(value)).encode()
    if isinstance(value, np.ndarray):
        kind = "<f8" if value.dtype.kind == "f" else "<i8"
        return kind[1].upper().encode(), np.ascontiguousarray(
            value.astype(kind, copy=False)
        ).tobytes()
    texts = [text.encode("utf-8", "surrogatepass") for text in value]
    lengths = np.array([len(text) for text in texts], dtype="<i8")
    return b"t", len(texts).to_bytes(8, "little") + lengths.tobytes() + b"".join(texts)


def digest_json(data: object) -> str:
    """SHA-256 of JSON data, whatever the order of its keys."""
    return hashlib.sha256(json.dumps(data, sort_keys=True).encode()).hexdigest()


#: Hexadecimal digits of the digest of a line.
LINE_DIGITS = 16
_DIGEST_LINE = re.compile(rf'(\{{.+),"sha256":"([0-9a-f]{{{LINE_DIGITS}}})"\}}')


def add_line_digest(text: str, *context: str) -> str:
    """A JSON object with a last key ``sha256`` over its text and what it belongs to.

    Args:
        text: The object, on one line, with at least one key.
        context: What the object belongs to, such as the file's first line.
    """
    return f'{text[:-1]},"sha256":"{hash_values(text, *context)[:LINE_DIGITS]}"}}'


def strip_line_digest(line: str, *context: str) -> str | None:
    """The text that :func:`add_line_digest` was given; None where the line has no right digest."""
    match = _DIGEST_LINE.fullmatch(line)
    if match is None:
        return None
    text = f"{match[1]}}}"
    return text if hash_values(text, *context)[:LINE_DIGITS] == match[2] else None


def mix_words(words: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """SplitMix64's finalizer (Steele, Lea & Flood 2014): every bit in depends on every bit out."""
    mixed = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(mixed ^ (mixed >> np.uint64(31)))
