"""The objects of large JSON Lines files, one after the other, and their texts."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import IO, Any

from fusion_bench.datasets.collection import CollectionDocument
from fusion_bench.errors import DataError
from fusion_bench.io.file_bytes import GZIP
from fusion_bench.io.json_objects import parse_object, require_text
from fusion_bench.util.files.regular_files import open_regular

#: Most characters of a line; the longest document of BEIR has some 2 million.
MOST_CHARACTERS = 64_000_000


def iterate_objects(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Each object of a JSON Lines file, gzip or not, with its place; blank lines are skipped.

    Unlike :func:`~fusion_bench.io.json_objects.read_objects` it holds one line at a time.

    Raises:
        DataError: The file cannot be read, or a line is not a JSON object.
    """
    try:
        with open_regular(path) as file:
            is_packed = file.peek(len(GZIP))[: len(GZIP)] == GZIP
            lines: IO[bytes] = gzip.GzipFile(fileobj=file) if is_packed else file  # type: ignore[assignment]
            yield from _parse_lines(path, lines)
    except FileNotFoundError:
        raise DataError(f"{path}: no such file: check the path") from None
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise DataError(f"{path}: damaged gzip file ({error}): copy it again") from None
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror or error}") from None


def _parse_lines(path: Path, lines: IO[bytes]) -> Iterator[tuple[str, dict[str, Any]]]:
    number = 0
    while line := lines.readline(MOST_CHARACTERS):
        number += 1
        where = f"{path}:{number}"
        if len(line) == MOST_CHARACTERS:
            raise DataError(f"{where}: a line of over {MOST_CHARACTERS:,} bytes: not JSON Lines")
        try:
            text = line.decode("utf-8-sig" if number == 1 else "utf-8")
        except UnicodeDecodeError:
            raise DataError(f"{where}: not UTF-8 text") from None
        if text.strip():
            yield where, parse_object(text, where)


def parse_document(item: Mapping[str, Any], where: str) -> CollectionDocument:
    """A document of BEIR or MTEB: ``_id`` or ``id``, ``text``, and perhaps ``title``.

    Raises:
        DataError: It has no id or text, or one that is no text.
    """
    given, text = item.get("_id", item.get("id")), item.get("text")
    if given in (None, "") or text is None:
        raise DataError(
            f"{where}: a document needs an '_id' and a 'text' (found: {', '.join(item) or 'none'})"
        )
    title = item.get("title")
    return CollectionDocument(
        require_text(given, "_id", where),
        "" if title is None else require_text(title, "title", where),
        require_text(text, "text", where),
    )


def collect_texts(rows: Iterable[tuple[str, Mapping[str, Any]]]) -> dict[str, str]:
    """Id → text of the queries of BEIR or MTEB.

    Args:
        rows: Place and content of each.

    Raises:
        DataError: A query has no id or text, or one that is no text, or an id stands twice.
    """
    texts: dict[str, str] = {}
    for where, item in rows:
        query, text = parse_query_text(item, where)
        if query in texts:
            raise DataError(f"{where}: query {query!r} stands twice: keep one")
        texts[query] = text
    return texts


def parse_query_text(item: Mapping[str, Any], where: str) -> tuple[str, str]:
    """Id and text of a query of BEIR or MTEB.

    Raises:
        DataError: It has no id or text, or one that is no text.
    """
    given, text = item.get("_id", item.get("id")), item.get("text")
    if given in (None, "") or text is None:
        raise DataError(
            f"{where}: a query needs an '_id' and a 'text' (found: {', '.join(item) or 'none'})"
        )
    return require_text(given, "_id", where), require_text(text, "text", where)
