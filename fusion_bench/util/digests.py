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
        if value is None:
            kind, data = b"n", b""
        elif isinstance(value, str):
            kind, data = b"s", value.encode("utf-8", "surrogatepass")
        elif isinstance(value, bytes):
            kind, data = b"b", value
        elif isinstance(value, int):
            kind, data = b"i", str(int(value)).encode()
        elif isinstance(value, np.ndarray):
            kind, number = (b"F", "<f8") if value.dtype.kind == "f" else (b"I", "<i8")
            data = np.ascontiguousarray(value.astype(number, copy=False)).tobytes()
        else:
            texts = [text.encode("utf-8", "surrogatepass") for text in value]
            lengths = np.array([len(text) for text in texts], dtype="<i8").tobytes()
            kind, data = b"t", len(texts).to_bytes(8, "little") + lengths + b"".join(texts)
        sha.update(kind + len(data).to_bytes(8, "little"))
        sha.update(data)
    return sha.hexdigest()


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
