"""The parts of a method's docstring: summary, prose, source, example, meaning of each parameter."""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass

#: ``w_s``, ``Σ_s``, ``MAP_s``: a letter below; ``rank_constant`` is a name.
_SUBSCRIPT = re.compile(r"(Σ|\b[^\W\d_]+)_([a-z])\b")


@dataclass(frozen=True)
class Docstring:
    """A docstring in Markdown.

    Attributes:
        summary: Its first line, without the name that stands before a colon.
        prose: The paragraphs that are nothing of the following.
        source: What stands behind ``Source:``; empty = nothing.
        example: What stands behind ``Example:``; empty = nothing.
        attributes: Attribute → its meaning.
    """

    summary: str
    prose: tuple[str, ...]
    source: str
    example: str
    attributes: Mapping[str, str]


def parse_docstring(text: str) -> Docstring:
    """The parts of a docstring of this project's style.

    Args:
        text: As ``__doc__`` has it.
    """
    first, *paragraphs = re.split(r"\n\s*\n", inspect.cleandoc(text))
    prose, source, example = [], "", ""
    attributes: dict[str, str] = {}
    for paragraph in paragraphs:
        if paragraph.startswith("Source:"):
            source = to_markdown(paragraph.removeprefix("Source:"))
        elif paragraph.startswith("Example:"):
            example = to_markdown(paragraph.removeprefix("Example:"))
        elif paragraph.startswith("Attributes:"):
            attributes = _parse_attributes(paragraph)
        else:
            prose.append(to_markdown(paragraph))
    summary = re.sub(r"^``[^`]+``: ", "", first, count=1)
    return Docstring(to_markdown(summary), tuple(prose), source, example, attributes)


def _parse_attributes(paragraph: str) -> dict[str, str]:
    """Name → meaning, of lines such as ``gamma: γ, at least 0.``, which may go on indented."""
    body = textwrap.dedent(paragraph.partition("\n")[2])
    entries = re.findall(r"^(\w+): (.*(?:\n[ ]+.*)*)", body, re.MULTILINE)
    return {name: to_markdown(meaning) for name, meaning in entries}


def to_markdown(text: str) -> str:
    """One paragraph of reStructuredText as Markdown, in one line."""
    plain = " ".join(text.split())
    plain = re.sub(r":\w+:`~?([^`]+)`", r"`\1`", plain)
    pieces = re.split(r"(``[^`]+``|`[^`]+`|https?://[^\s)]+[^\s).,;:])", plain)
    return "".join(_convert_piece(piece) for piece in pieces)


def _convert_piece(piece: str) -> str:
    """Code with single backticks, addresses as links; all else without an accidental markup."""
    if piece.startswith("`"):
        return f"`{piece.strip('`')}`"
    if piece.startswith("http"):
        return f"<{piece}>"
    escaped = re.sub(r"([<\[\]\\])", r"\\\1", piece)
    return _SUBSCRIPT.sub(r"\1<sub>\2</sub>", escaped)


def find_meanings(model: type) -> dict[str, str]:
    """The meaning of each attribute of a class, its bases' where it says nothing itself."""
    meanings: dict[str, str] = {}
    for base in reversed(model.__mro__):
        if "__doc__" in vars(base) and base.__doc__:
            meanings |= parse_docstring(base.__doc__).attributes
    return meanings
