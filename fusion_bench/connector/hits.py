"""The hits of an engine's answer, and what no answer may hold."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from fusion_bench.errors import ProviderError
from fusion_bench.util.http.json_fields import malformed_error
from fusion_bench.util.http.server_text import hidden_reason

#: Characters of a document's id, and of its text.
LONGEST_ID: Final = 1_000
LONGEST_TEXT: Final = 1_000_000
#: Categories of characters that no id may hold: control codes, halves of surrogate pairs, ends of
#: lines.
REFUSED_CATEGORIES: Final = frozenset({"Cc", "Cs", "Zl", "Zp"})


@dataclass(frozen=True, slots=True)
class Hit:
    """One document of a list.

    Attributes:
        document: Its id.
        score: Greater is better: a distance has its sign turned.
        text: Its text; None = not asked for, or the engine has none.
    """

    document: str
    score: float
    text: str | None = None


def has_control(text: str) -> bool:
    """Whether a text holds a control character, half of a surrogate pair, or an end of line."""
    return not text.isprintable() and any(
        unicodedata.category(character) in REFUSED_CATEGORIES for character in text
    )


def make_hit(document: object, score: object, text: object = None) -> Hit:
    """A hit from values that an engine sent.

    Args:
        document: Its id: text, or a whole number.
        score: A finite number.
        text: Text or None.

    Raises:
        ProviderError: Kind ``malformed``: a value is of another kind, cannot be stored, or shows
            the API key: without it, it would be another document.
    """
    for what, value in (("id", document), ("text", text)):
        if (reason := hidden_reason(value)) is not None:
            raise malformed_error(f"the {what} of a hit: {reason}")
    if isinstance(document, int) and not isinstance(document, bool):
        document = str(document)
    if not isinstance(document, str) or not document.strip():
        raise malformed_error("a hit without an id")
    if len(document) > LONGEST_ID:
        raise malformed_error(f"an id has more than {LONGEST_ID:,} characters")
    if has_control(document):
        raise malformed_error(f"the id {document[:80]!r} holds a control character")
    return Hit(document, _to_number(document, score), _to_text(document, text))


def _to_number(document: str, score: object) -> float:
    try:
        number = math.nan if isinstance(score, bool | str | bytes) else float(score)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not math.isfinite(number):
        raise malformed_error(f"the score of {document[:80]!r} is no finite number")
    return number + 0.0  # of −0 and 0 one


def _to_text(document: str, text: object) -> str | None:
    if text is None:
        return None
    if not isinstance(text, str):
        raise malformed_error(f"the text of {document[:80]!r} is no text")
    if len(text) > LONGEST_TEXT:
        raise malformed_error(
            f"the text of {document[:80]!r} has more than {LONGEST_TEXT:,} characters"
        )
    return text.encode(errors="replace").decode()  # without halves of surrogate pairs


def check_hits(hits: object, depth: int) -> tuple[Hit, ...]:
    """The first ``depth`` hits of an answer, each with values that can be stored.

    Args:
        hits: A sequence of hits, best first, as the engine ordered them.
        depth: How many were asked for.

    Raises:
        ProviderError: Kind ``malformed``: it is no list of hits, a value breaks a rule of
            :func:`make_hit`, or a document stands twice.
    """
    if isinstance(hits, str | bytes) or not isinstance(hits, Sequence):
        raise malformed_error("no list of hits")
    checked: dict[str, Hit] = {}
    for hit in hits[:depth]:
        if not isinstance(hit, Hit):
            raise malformed_error(f"a {type(hit).__name__} in place of a hit")
        known = make_hit(hit.document, hit.score, hit.text)
        if known.document in checked:
            raise malformed_error(f"document {known.document[:80]!r} stands twice")
        checked[known.document] = known
    return tuple(checked.values())


def incomplete_error(problem: str) -> ProviderError:
    """The error of an answer to which a part of the index gave nothing: it may be asked again."""
    return ProviderError(f"incomplete answer: {problem}", kind="server")
