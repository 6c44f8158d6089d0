"""Scores in the answer of a language model.

Read as 8: ``8``, ``8.``, ``8/10``, ``8 out of 10``, ``8 (very relevant)``, ``8 - very relevant``,
and with the document's number before it ``1. 8``, ``1) 8``, ``1: 8``, ``[1] 8``, ``Document 1: 8``.
Scores stand between commas, or one a line.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

#: Version of these rules; part of what a score depends on.
ANSWER_RULES = 2
#: Stands in for a score that cannot be read.
MIDDLE = 0.5
HIGHEST = 10.0

#: What a model puts around a list: emphasis, quotes, code.
_DECORATION = str.maketrans("", "", "*`\"'")
#: ``(very relevant)``, but not the number of a document: ``(1)``.
_REMARK = re.compile(r"\((?!\d+\))[^()]*\)")
#: ``Scores:`` before the first of them.
_HEADING = re.compile(r"([^\d,:\[(]*):\s*")
_LETTER = re.compile(r"[^\W\d]")
_BULLET = re.compile(r"^[-•]\s+")
_NUMBERED = re.compile(
    r"(?:(?:document|doc)\.?\s*)?"
    r"(?:\[(\d{1,9})\]:?\s*|\((\d{1,9})\):?\s*|(\d{1,9})\.\s+|(\d{1,9})[):]\s*)(\S.*)",
    re.IGNORECASE,
)
_SCORE = re.compile(
    r"([+-]?\d+(?:\.\d+)?)\.?(?:\s*(?:/|out of)\s*10(?:\.0)?)?\.?"
    r"(?:\s*[-\u2013\u2014:]\s*[^\d\s].*)?",
    re.IGNORECASE,
)


class AnswerScores(NamedTuple):
    """The scores of an answer.

    Attributes:
        scores: One per document, on the unit scale; 0.5 where none could be read.
        unread: The 0-based positions where none could be read.
    """

    scores: tuple[float, ...]
    unread: tuple[int, ...]


class _Cell(NamedTuple):
    """One score of an answer: the document's number if it names one, and the value if any."""

    number: int | None
    value: float | None


def parse_scores(content: str, count: int) -> AnswerScores:
    """The scores on the unit scale of an answer such as ``8, 3, 9``.

    Scores that all name their documents go to these; others go by their position. Surplus scores
    are dropped. Values outside 0 … 10 are clipped.

    Args:
        content: Output of the model.
        count: Number of documents in the prompt.
    """
    cells = [_parse_cell(text) for text in _split_cells(content)]
    readable = [cell for cell in cells if cell.value is not None]
    if readable and all(cell.number is not None for cell in readable):
        by_position = {cell.number - 1: cell.value for cell in reversed(readable) if cell.number}
    else:
        by_position = {place: cell.value for place, cell in enumerate(cells)}
    values = [by_position.get(place) for place in range(count)]
    return AnswerScores(
        tuple(MIDDLE if value is None else value for value in values),
        tuple(place for place, value in enumerate(values) if value is None),
    )


def _split_cells(content: str) -> Iterator[str]:
    """The texts between commas and line ends."""
    for line in content.translate(_DECORATION).splitlines():
        text = _BULLET.sub("", _REMARK.sub("", line).strip())
        heading = _HEADING.match(text)
        if heading is not None and _LETTER.search(heading[1]):
            text = text[heading.end() :]
        if not text or text.endswith(":"):
            continue
        if text[0] == "[" and text.find("]") == len(text) - 1:
            text = text[1:-1]
        yield from text.rstrip(", ").split(",")


def _parse_cell(text: str) -> _Cell:
    text = text.strip()
    numbered = _NUMBERED.fullmatch(text)
    if numbered is not None:
        *numbers, rest = numbered.groups()
        value = _parse_value(rest.strip())
        if value is not None:
            return _Cell(next(int(number) for number in numbers if number), value)
    return _Cell(None, _parse_value(text))


def _parse_value(text: str) -> float | None:
    match = _SCORE.fullmatch(text)
    return None if match is None else min(max(float(match[1]) / HIGHEST, 0.0), 1.0)
