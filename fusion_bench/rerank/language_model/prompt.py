"""The prompt that asks a language model for scores; a template that a user may replace."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from fusion_bench.util.files.prompt_files import list_fields, read_prompt_file

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


@dataclass(frozen=True)
class PromptTemplate:
    """A template with the fields ``{query}``, ``{documents}`` and, if it likes, ``{count}``.

    Attributes:
        text: The template; ``{{`` and ``}}`` stand for braces.
    """

    text: str = TEMPLATE

    @property
    def label(self) -> str:
        """Its digest, as a part of a model's identity."""
        return f"sha256 {hashlib.sha256(self.text.encode()).hexdigest()[:16]}"

    def fill(self, query: str, documents: Sequence[str], characters: int) -> str:
        """The prompt for these documents.

        Args:
            query: The query.
            documents: Their texts.
            characters: Longer documents are cut there, and end with an ellipsis.
        """
        cut = (
            text if len(text) <= characters else f"{text[:characters]}{ELLIPSIS}"
            for text in documents
        )
        numbered = "\n\n".join(f"[{number}] {text}" for number, text in enumerate(cut, start=1))
        return self.text.format(query=query, documents=numbered, count=len(documents))


def read_template(path: Path | None) -> PromptTemplate:
    """The template of a file; None = the built-in one.

    Raises:
        ValueError: The file cannot be read, or is no template with these fields.
    """
    if path is None:
        return PromptTemplate()
    text = read_prompt_file(path, "prompt")
    _check_fields(text, path)
    return PromptTemplate(text)


def _check_fields(text: str, path: Path) -> None:
    fields = list_fields(text, path, ADVICE)
    for name, layout, conversion in fields:
        if name not in FIELDS or layout or conversion:
            suffix = f"!{conversion}" if conversion else f":{layout}" if layout else ""
            raise ValueError(f"{path}: {{{name}{suffix}}} is no field of a prompt: {ADVICE}")
    for name in REQUIRED:
        if name not in {field for field, _, _ in fields}:
            raise ValueError(f"{path}: the prompt lacks {{{name}}}: {ADVICE}")
