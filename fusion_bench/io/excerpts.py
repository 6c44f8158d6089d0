"""What people know queries and documents by: the beginning of a text, or a title.

Excerpts only stand beside ids on a page, so a text that cannot be read is left out.
"""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import IO, cast

from fusion_bench.data.records import Query
from fusion_bench.io.file_bytes import GZIP
from fusion_bench.util.formatting import is_encodable
from fusion_bench.util.regular_files import open_regular

#: Characters of a text or title.
MAX_LENGTH = 60
#: Bytes of a documents file, unpacked, in which titles are looked for (a second or two).
MAX_BYTES = 200_000_000


def shorten(text: str) -> str:
    """The first 60 characters of a text in one line, with ``…`` where there are more."""
    line = " ".join(text.split())
    return line if len(line) <= MAX_LENGTH else f"{line[:MAX_LENGTH].rstrip()}…"


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
    titles: dict[str, str] = {}
    wanted = set(documents)
    if path is None or not wanted:
        return titles
    try:
        for name, title in _read_all_titles(path):
            if name in wanted:
                titles[name] = title
                wanted.discard(name)
                if not wanted:
                    break
    except (OSError, EOFError, zlib.error):
        return titles  # no such file, or a damaged one
    return titles


def _read_all_titles(path: Path) -> Iterator[tuple[str, str]]:
    """Each document of a file with its title; lines that are no documents are skipped."""
    with open_regular(path) as file:
        packed = file.read(len(GZIP)) == GZIP
    remaining = MAX_BYTES
    with cast("IO[bytes]", gzip.open(path) if packed else path.open("rb")) as file:
        for line in file:
            remaining -= len(line)
            if remaining < 0:
                return
            title = _parse_title(line)
            if title is not None:
                yield title


def _parse_title(line: bytes) -> tuple[str, str] | None:
    """The id and the title of a document; None where the line is none."""
    try:
        item = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(item, dict):
        return None
    name, text = item.get("id", item.get("_id")), item.get("title") or item.get("text")
    if name is None or not isinstance(text, str) or not is_encodable(text):
        return None
    return str(name), shorten(text)
