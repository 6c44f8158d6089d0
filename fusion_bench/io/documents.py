"""Texts of documents: JSON Lines, read only by what needs texts (rerankers, explanations)."""

from __future__ import annotations

from pathlib import Path

from fusion_bench.data.records import Document
from fusion_bench.errors import DataError
from fusion_bench.io.json_lines import objects, text_of

__all__ = ["load_documents"]


def load_documents(path: Path) -> dict[str, Document]:
    """Read documents from JSON Lines: ``id`` (or ``_id``), ``text`` and perhaps ``title``.

    A title stands before the text with one blank between them, as BEIR's collections are read.

    Raises:
        DataError: A line without an id or a text, an id given twice, or a value that is no text.
    """
    found: dict[str, Document] = {}
    for number, item in objects(path):
        where = f"{path}:{number}"
        given, text = item.get("id", item.get("_id")), item.get("text")
        if given in (None, "") or text is None:
            raise DataError(
                f"{where}: a document needs an 'id' and a 'text' "
                f"(found: {', '.join(item) or 'nothing'})"
            )
        name = text_of(given, "id", where)
        if name in found:
            raise DataError(f"{where}: document {name!r} stands twice: keep one")
        parts = [text_of(part, "text", where) for part in (item.get("title"), text) if part]
        found[name] = Document(name, " ".join(parts))
    if not found:
        raise DataError(f"{path}: the file is empty: at least one document is needed")
    return found
