"""Scores in the answer of a language model.

Read as 8: ``8``, ``8.``, ``8/10``, ``8 out of 10``, ``8 (very relevant)``, ``8 - very relevant``,
whatever else begins with 8, such as ``8 points``, and with the document's number before it
``1. 8``, ``1) 8``, ``1: 8``, ``[1] 8``, ``Document 1: 8``. Scores stand between commas, or one a
line; bare numbers also between semicolons or blanks. What a model thinks is not read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

#: Version of these rules; part of what a score depends on.
ANSWER_RULES = 3
#: Stands in for a score that cannot be read.
MIDDLE = 0.5
HIGHEST = 10.0

#: What a model puts around a list: emphasis, quotes, code.
_DECORATION = str.maketrans("\u3001\uff0c\uff1b", ",,;", "*`\"'{}")
#: What a model thinks, which may have no beginning or no end.
_THOUGHT = re.compile(r"^.*</think>|<think>.*$", re.DOTALL)
#: ``(very relevant)``, but not the number of a document: ``(1)``.
_REMARK = re.compile(r"\((?!\d+\))[^()]*\)")
#: ``Scores:`` before the first of them.
_HEADING = re.compile(r"(?!(?:document|doc|index|id)\b)([^\d,:\[(]*):\s*", re.IGNORECASE)
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


_NUMBER = r"[+-]?(?:\d+(?:\.\d+)?|\.\d+)"
#: A number, and whatever follows it.
_BEGINNING = re.compile(f"({_NUMBER})")
_NUMBERS = re.compile(rf"{_NUMBER}(?:[\s;]+{_NUMBER})+;?")


class AnswerScores(NamedTuple):
    """The scores of an answer.

    Attributes:
        scores: One per document, on the unit scale; 0.5 where none could be read.
        unread: The 0-based positions where none could be read.
    """

    scores: tuple[float, ...]
    unread: tuple[int, ...]


class _Cell(NamedTuple):
    """One score of an answer.

    Attributes:
        number: The document's number if it names one.
        value: The score on the unit scale; None = there is none.
        is_plain: Whether a score is all that stands there.
    """

    number: int | None
    value: float | None
    is_plain: bool = True


def parse_scores(content: str, count: int) -> AnswerScores:
    """The scores on the unit scale of an answer such as ``8, 3, 9``.

    Scores that all name their documents go to these; others go by their position. Surplus scores
    are dropped. Values outside 0 … 10 are clipped. Lines that could shift the positions of others
    are no scores: where it is not certain which are, none is read.

    Args:
        content: Output of the model.
        count: Number of documents in the prompt.
    """
    lines = [[_parse_cell(text) for text in cells] for cells in _split_cells(content)]
    readable = [cell for line in lines for cell in line if cell.value is not None]
    if readable and all(cell.number is not None for cell in readable):
        by_position = {cell.number - 1: cell.value for cell in reversed(readable) if cell.number}
    else:
        by_position = {place: cell.value for place, cell in enumerate(_choose_cells(lines, count))}
    values = [by_position.get(place) for place in range(count)]
    return AnswerScores(
        tuple(MIDDLE if value is None else value for value in values),
        tuple(place for place, value in enumerate(values) if value is None),
    )


def _choose_cells(lines: Sequence[Sequence[_Cell]], count: int) -> list[_Cell]:
    """The cells that stand for the documents in their order; none where that is not certain."""
    cells = [cell for line in lines for cell in line]
    if len(cells) == count:
        return cells
    is_plain = any(cell.value is not None and cell.is_plain for cell in cells)
    lists = [
        line
        for line in lines
        if any(cell.value is not None and cell.is_plain >= is_plain for cell in line)
    ]
    whole = [line for line in lists if len(line) == count > 1]
    if len(whole) == 1:
        return list(whole[0])
    kept = [cell for line in lists for cell in line]
    is_certain = len(kept) == count or (not whole and len(lists) in {1, len(lines)})
    return kept if is_certain else []


def _split_cells(content: str) -> Iterator[list[str]]:
    """The texts between commas of each line."""
    for line in _THOUGHT.sub("", content).translate(_DECORATION).splitlines():
        text = _BULLET.sub("", _REMARK.sub("", line).strip())
        heading = _HEADING.match(text)
        if heading is not None and _LETTER.search(heading[1]):
            text = text[heading.end() :]
        if not any(map(str.isalnum, text)) or text.endswith(":"):
            continue
        if text[0] == "[" and text.find("]") == len(text) - 1:
            text = text[1:-1]
        text = text.rstrip(", ")
        yield re.split(r"[\s;]+", text.rstrip(";")) if _NUMBERS.fullmatch(text) else text.split(",")


def _parse_cell(text: str) -> _Cell:
    text = text.strip()
    numbered = _NUMBERED.fullmatch(text)
    if numbered is None:
        return _Cell(None, *_parse_value(text))
    *numbers, rest = numbered.groups()
    value, is_plain = _parse_value(rest.strip())
    if value is None:  # "1. No", and "8: very relevant"
        value = _clip(_SCORE.fullmatch(text))
        return _Cell(None, value)
    return _Cell(next(int(number) for number in numbers if number), value, is_plain)


def _parse_value(text: str) -> tuple[float | None, bool]:
    """The score that a text begins with, and whether it is all that stands there."""
    plain = _SCORE.fullmatch(text)
    return _clip(plain or _BEGINNING.match(text)), plain is not None


def _clip(match: re.Match[str] | None) -> float | None:
    return None if match is None else min(max(float(match[1]) / HIGHEST, 0.0), 1.0)
