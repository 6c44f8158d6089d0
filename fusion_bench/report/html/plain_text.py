"""Texts of queries and documents as a page shows them."""

from __future__ import annotations

import re
from typing import Any

from fusion_bench.util.formatting import escape_control_chars

#: What does nothing but harm in running text: control characters, characters that turn the
#: direction of writing, and half surrogate pairs. Joiners and marks of direction stay: scripts need
#: them, and the page isolates every text.
HARMFUL = re.compile("[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
BLANKS = re.compile(r"[\t\n\r\u2028\u2029]+")


def readable_text(text: str) -> str:
    r"""Running text in one line; other control characters appear as codes such as ``\x1b``."""
    return HARMFUL.sub(lambda match: _code(match[0]), BLANKS.sub(" ", text))


def escape_texts(data: Any) -> Any:  # noqa: ANN401 - plain data of any shape
    """Plain data whose texts have no control characters; these appear as codes."""
    if isinstance(data, str):
        return escape_control_chars(data)
    if isinstance(data, dict):
        return {key: escape_texts(value) for key, value in data.items()}
    if isinstance(data, list | tuple):
        return [escape_texts(value) for value in data]
    return data


def _code(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")
