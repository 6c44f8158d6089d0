"""What people know queries and documents by: the beginning of a text, or a title.

Excerpts only stand beside ids on a page, so a text that cannot be read is left out.
"""

from __future__ import annotations

import gzip
import json
import math
import re
import zlib
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import IO, cast

from fusion_bench.data.records import Query
from fusion_bench.io.raw_files import GZIP
from fusion_bench.util.files import open_regular
from fusion_bench.util.formatting import is_encodable

#: Characters of a text or title.
MAX_LENGTH = 60
#: Bytes of a documents file, unpacked, in which titles are looked for (a second or two).
MAX_BYTES = 200_000_000
#: The value of a key that may be a document's id: a text, or anything else.
ID_VALUE = re.compile(rb'"_?id"\s*:\s*(?:"((?:[^"\\]|\\.)*)"|([^\s,}\]]+))')


def shorten(text: str, length: int = MAX_LENGTH) -> str:
    """The first characters of a text in one line, with ``…`` where there are more."""
    line = " ".join(text.split())
    return line if len(line) <= length else f"{line[:length].rstrip()}…"


def query_excerpt(query: Query | None) -> str:
    """The beginning of a query's text; empty where it is not known."""
    return "" if query is None or query.text is None else shorten(query.text)


def read_titles(path: Path | None, documents: Collection[str]) -> dict[str, str]:
    """The titles of some documents, or the beginnings of their texts.

    Args:
        path: JSON Lines with ``id`` (or ``_id``), ``text`` and perhaps ``title``, plain or gzip;
            None = no such file. Only its first 200 MB are searched.
        documents: Ids of the documents.

    Returns:
        Document → title, without those that are not found.
    """
    return {name: shorten(title or text) for name, title, text in _read_documents(path, documents)}


def read_excerpts(
    path: Path | None, documents: Collection[str], *, length: int, limit: int
) -> dict[str, str]:
    """The titles of some documents together with the beginnings of their texts.

    Args:
        path: As for :func:`read_titles`.
        documents: Ids of the documents.
        length: Characters of each excerpt.
        limit: Characters of all excerpts; documents that come later in the file have none.

    Returns:
        Document → excerpt, without those that are not found.
    """
    excerpts: dict[str, str] = {}
    for name, title, text in _read_documents(path, documents):
        parts = (part for part in (title, text) if part)
        excerpts[name] = shorten(": ".join(parts), length)
        limit -= len(excerpts[name])
        if limit < 0:
            del excerpts[name]
            break
    return excerpts


def read_whole_texts(path: Path | None, documents: Collection[str]) -> dict[str, str]:
    """The titles and texts of some documents, however long, from the whole file.

    Args:
        path: As for :func:`read_titles`.
        documents: Ids of the documents.

    Returns:
        Document → title and text on lines of their own, without those that are not found.
    """
    return {
        name: "\n\n".join(filter(None, (title, text)))
        for name, title, text in _read_documents(path, documents, most_bytes=None)
    }


def _read_documents(
    path: Path | None, documents: Collection[str], most_bytes: int | None = MAX_BYTES
) -> Iterator[tuple[str, str, str]]:
    """Id, title and text of each of these documents that is found; each may be empty."""
    wanted = set(documents)
    if path is None or not wanted:
        return
    try:
        for line in _read_lines(path, most_bytes):
            if not _may_name(line, wanted):
                continue
            document = _parse_document(line)
            if document is not None and document[0] in wanted:
                yield document
                wanted.discard(document[0])
                if not wanted:
                    return
    except (OSError, EOFError, zlib.error):
        return  # no such file, or a damaged one


def _read_lines(path: Path, most_bytes: int | None) -> Iterator[bytes]:
    """The lines of the first bytes of a file, unpacked; None = of all."""
    with open_regular(path) as file:
        packed = file.read(len(GZIP)) == GZIP
    remaining = math.inf if most_bytes is None else most_bytes
    with cast("IO[bytes]", gzip.open(path) if packed else path.open("rb")) as file:
        for line in file:
            remaining -= len(line)
            if remaining < 0:
                return
            yield line


def _may_name(line: bytes, wanted: Collection[str]) -> bool:
    """Whether the id of a line may be wanted; False only where it is not.

    Most lines of a large file are not wanted, and to parse each takes five times as long.
    """
    for match in ID_VALUE.finditer(line):
        text, other = match.groups()
        value = other if text is None else text
        is_plain = b"\\" not in text if text is not None else other.isdigit()
        if not is_plain or value.decode(errors="replace") in wanted:
            return True
    return False


def _parse_document(line: bytes) -> tuple[str, str, str] | None:
    """The id, the title and the text of a document; None where the line is none."""
    try:
        item = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(item, dict):
        return None
    name = item.get("id", item.get("_id"))
    title, text = (_read_text(item.get(key)) for key in ("title", "text"))
    return None if name is None or not (title or text) else (str(name), title, text)


def _read_text(value: object) -> str:
    """A text; empty where it is none, or cannot be written to a file."""
    return value if isinstance(value, str) and is_encodable(value) else ""
