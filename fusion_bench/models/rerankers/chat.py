"""Scores from a language model behind an OpenAI-compatible chat endpoint.

Read as 8: ``8``, ``8.``, ``8/10``, ``8 out of 10``, ``8 (very relevant)``, ``8 - very relevant``,
whatever else begins with 8, such as ``8 points``, and with the document's number before it
``1. 8``, ``1) 8``, ``1: 8``, ``[1] 8``, ``Document 1: 8``. Scores stand between commas, or one a
line; bare numbers also between semicolons or blanks. What a model thinks is not read.

Pointwise grades from 0 to 10 for a batch of numbered documents in one prompt. A grade that is
missing or cannot be read becomes 0.5 and is counted; surplus ones are dropped.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, NamedTuple

from pydantic import Field, model_validator

from fusion_bench.models.reranker_protocol import Identity, Reply, Usage, approximate_tokens
from fusion_bench.models.rerankers._base import ChatProvider, providers
from fusion_bench.util.files import read_prompt_file
from fusion_bench.util.json_text import message_at, text_at

TEMPLATE = """\
Rate how relevant each document is to the query, on a scale from 0 (not relevant) to 10 (answers \
the query completely).

Query: {query}

Documents:
{documents}

Answer with {count} numbers between commas, one for each document in the order given, and nothing \
else. Example: 8,3,9,1"""
#: The fields of a template, and those that it cannot do without.
FIELDS, REQUIRED = ("query", "documents", "count"), ("query", "documents")
ADVICE = "a prompt has {query} and {documents}, may have {count}, and writes {{ and }} for braces"
#: Follows a document that was cut.
ELLIPSIS = "..."


def fill_template(template: str, query: str, documents: Sequence[str], characters: int) -> str:
    """The prompt for these documents.

    Args:
        template: Has the fields ``{query}``, ``{documents}`` and, if it likes, ``{count}``; ``{{``
            and ``}}`` stand for braces.
        query: The query.
        documents: Their texts.
        characters: Longer documents are cut there, and end with an ellipsis.
    """
    cut = (
        text if len(text) <= characters else f"{text[:characters]}{ELLIPSIS}" for text in documents
    )
    numbered = "\n\n".join(f"[{number}] {text}" for number, text in enumerate(cut, start=1))
    return template.format(query=query, documents=numbered, count=len(documents))


def read_template(path: Path | None) -> str:
    """The template of a file; None = the built-in one.

    Raises:
        ValueError: The file cannot be read, or is no template with these fields.
    """
    return TEMPLATE if path is None else read_prompt_file(path, "prompt", FIELDS, REQUIRED, ADVICE)


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


def parse_scores(content: str, count: int) -> tuple[tuple[float, ...], tuple[int, ...]]:
    """The scores on the unit scale of an answer such as ``8, 3, 9``.

    Scores that all name their documents go to these; others go by their position. Surplus scores
    are dropped. Values outside 0 … 10 are clipped. Lines that could shift the positions of others
    are no scores: where it is not certain which are, none is read.

    Args:
        content: Output of the model.
        count: Number of documents in the prompt.

    Returns:
        One score per document, 0.5 where none could be read; the 0-based positions where none could
        be read.
    """
    lines = [[_parse_cell(text) for text in cells] for cells in _split_cells(content)]
    readable = [cell for line in lines for cell in line if cell.value is not None]
    if readable and all(cell.number is not None for cell in readable):
        by_position = {cell.number - 1: cell.value for cell in reversed(readable) if cell.number}
    else:
        by_position = {place: cell.value for place, cell in enumerate(_choose_cells(lines, count))}
    values = [by_position.get(place) for place in range(count)]
    return (
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


#: Output tokens of a score and its comma.
TOKENS_A_SCORE = 3
#: Most output tokens of a batch of up to ten documents, and of each document of a larger one.
ANSWER_TOKENS, ANSWER_TOKENS_A_DOCUMENT = 100, 10


@providers.register
class Chat(ChatProvider):
    """``/chat/completions`` of OpenAI or a compatible server.

    Attributes:
        characters: Documents are cut at this length, and end with an ellipsis then.
        prompt: A text file with the prompt, see :func:`fill_template`; None = the built-in one.
        answer_tokens: Most tokens of an answer; None = 100, and 10 per document of a batch of more
            than ten. A fixed limit would cut the answer of a large batch, and what is cut off
            cannot be read.
    """

    batch: Annotated[int, Field(ge=1)] = 10
    max_tokens: Annotated[int, Field(ge=1)] | None = None
    characters: Annotated[int, Field(ge=1)] = 500
    prompt: Path | None = None
    answer_tokens: Annotated[int, Field(ge=1)] | None = None

    @model_validator(mode="after")
    def _check_prompt_and_limit(self) -> Chat:
        self.template  # noqa: B018 - raises if the file is no template
        needed = TOKENS_A_SCORE * self.batch
        if self.answer_tokens is not None and self.answer_tokens < needed:
            raise ValueError(
                f"answer_tokens {self.answer_tokens} cannot hold the scores of a batch of "
                f"{self.batch}, which take {TOKENS_A_SCORE} tokens each: give at least {needed}, "
                "or a smaller batch"
            )
        return self

    @cached_property
    def template(self) -> str:
        """The prompt's template, read once."""
        return read_template(self.prompt)

    @property
    def answer_limit(self) -> int:
        """Most tokens of an answer."""
        return self.answer_tokens or max(ANSWER_TOKENS, ANSWER_TOKENS_A_DOCUMENT * self.batch)

    @property
    def model_identity(self) -> Identity:
        """With the digest and the parameters of the prompt."""
        cut = f"{self.characters} characters, {self.truncation.label}"
        digest = hashlib.sha256(self.template.encode()).hexdigest()[:16]
        prompt = (
            f"sha256 {digest}, answer rules {ANSWER_RULES}, batches of {self.batch}, "
            f"{self.degree}, at most {self.answer_limit} tokens"
        )
        return replace(super().model_identity, truncation=cut, prompt=prompt)

    def build_request(self, query: str, documents: Sequence[str]) -> dict[str, Any]:
        """One message with the prompt."""
        return self.build_message(self._build_prompt(query, documents), self.answer_limit)

    def _build_prompt(self, query: str, documents: Sequence[str]) -> str:
        return fill_template(self.template, query, documents, self.characters)

    def parse_reply(self, data: Any, count: int) -> Reply:  # noqa: ANN401 - JSON
        """The numbers of the first choice's message."""
        scores, unread = parse_scores(message_at(data), count)
        return Reply(scores, text_at(data, "model"), self.parse_usage(data), unread)

    def estimate_usage(self, query: str, documents: Sequence[str]) -> Usage:
        """The prompt, and one grade per document."""
        return Usage(
            tokens=approximate_tokens(self._build_prompt(query, documents)),
            output_tokens=TOKENS_A_SCORE * len(documents),
        )
