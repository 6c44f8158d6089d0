"""Texts of queries and documents, as long as a page shows them."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Final

from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.io.excerpts import read_excerpts, shorten
from fusion_bench.util.formatting import is_encodable

#: Characters of a query's or a document's text.
TEXT_LENGTH: Final = 300
#: Characters of the texts of all documents of a collection.
MAX_TEXT: Final = 10_000_000


def query_texts(runs: AlignedRuns) -> tuple[str | None, ...]:
    """(Q,): the text of each query, at most 300 characters of it; None = not known."""
    if not runs.records:
        return (None,) * len(runs.queries)
    return tuple(_shorten(record.text) for record in runs.records)


def document_texts(path: Path | None, documents: Collection[str]) -> dict[str, str]:
    """By id, the title and the beginning of the text of documents; without those not found.

    Args:
        path: The documents of the dataset; None = it has none.
        documents: Ids.
    """
    return read_excerpts(path, documents, length=TEXT_LENGTH, limit=MAX_TEXT)


def _shorten(text: str | None) -> str | None:
    return None if text is None or not is_encodable(text) else shorten(text, TEXT_LENGTH)
