"""Texts of queries and documents as a page shows them."""

from __future__ import annotations

import re

#: What does nothing but harm in running text: control characters, characters that turn the
#: direction of writing, and half surrogate pairs. Joiners and marks of direction stay: scripts need
#: them, and the page isolates every text.
HARMFUL = re.compile("[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
BLANKS = re.compile(r"[\t\n\r\u2028\u2029]+")


def readable_text(text: str) -> str:
    r"""Running text in one line; other control characters appear as codes such as ``\x1b``."""
    return HARMFUL.sub(lambda match: _code(match[0]), BLANKS.sub(" ", text))


def _code(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")
