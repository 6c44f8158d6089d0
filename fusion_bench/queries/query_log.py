"""A log of queries: how often each text was asked."""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from fusion_bench.data.query_groups.similar_texts import normalize_text
from fusion_bench.errors import DataError
from fusion_bench.io.file_bytes import format_suffix, read_text
from fusion_bench.io.json_objects import read_objects

#: Names of the column or key with the text, and with how often it was asked.
TEXT_NAMES: Final = ("query", "text", "q", "search", "search_term", "searchTerm", "keywords")
COUNT_NAMES: Final = ("count", "frequency", "n", "hits", "searches")
#: A longer text is a pasted document, not a query.
MOST_CHARACTERS: Final = 1_000
#: Counts stay below: sums of them are exact as floats.
MOST_SEARCHES: Final = 10**12
DELIMITERS: Final = {".csv": ",", ".tsv": "\t"}


@dataclass(frozen=True)
class LoggedText:
    """A query of a log.

    Attributes:
        text: Its most frequent spelling.
        frequency: How often it was asked, in any spelling.
    """

    text: str
    frequency: int


@dataclass(frozen=True)
class QueryLog:
    """The queries of a log.

    Attributes:
        queries: Each once, the most frequent first; equal ones by their text.
        searches: All searches that count.
        too_long: Searches left out for their length.
        empty: Searches without a letter or digit.
    """

    queries: tuple[LoggedText, ...]
    searches: int
    too_long: int
    empty: int


def read_query_log(path: Path, column: str | None = None) -> QueryLog:
    """Read a log: text with one query a line, JSON Lines, CSV or TSV.

    Spellings that differ only in case, blanks or punctuation are one query.

    Args:
        path: The file, gzip or not.
        column: The column or key of the text; by default ``query``, ``text`` and other usual names.

    Raises:
        DataError: It cannot be read, holds no query, or has no such column.
    """
    spellings: dict[str, Counter[str]] = {}
    too_long = empty = 0
    for text, count in _read_rows(path, column):
        key = normalize_text(text)
        if not key:
            empty += count
        elif len(text) > MOST_CHARACTERS:
            too_long += count
        else:
            spellings.setdefault(key, Counter())[" ".join(text.split())] += count
    if not spellings:
        raise DataError(f"{path}: no query: at least one line with a text is needed")
    queries = [
        LoggedText(min(counts, key=lambda text: (-counts[text], text)), counts.total())
        for counts in spellings.values()
    ]
    queries.sort(key=lambda query: (-query.frequency, query.text))
    return QueryLog(tuple(queries), sum(query.frequency for query in queries), too_long, empty)


def _read_rows(path: Path, column: str | None) -> Iterator[tuple[str, int]]:
    """Text and count of each row."""
    suffix = format_suffix(path)
    if suffix in {".jsonl", ".json", ".ndjson"}:
        for number, item in read_objects(path):
            yield _read_item(item, column, f"{path}:{number}")
    elif suffix in DELIMITERS:
        yield from _read_table(path, DELIMITERS[suffix], column)
    else:
        yield from ((line, 1) for line in read_text(path).splitlines())


def _read_table(path: Path, delimiter: str, column: str | None) -> Iterator[tuple[str, int]]:
    rows = csv.DictReader(io.StringIO(read_text(path), newline=""), delimiter=delimiter)
    try:
        for row in rows:
            item = {key: value for key, value in row.items() if isinstance(key, str)}
            yield _read_item(item, column, f"{path}:{rows.line_num}")
    except csv.Error as error:
        raise DataError(f"{path}:{rows.line_num}: {error}") from None


def _read_item(item: Mapping[str, Any], column: str | None, where: str) -> tuple[str, int]:
    names = TEXT_NAMES if column is None else (column,)
    text = next((item[name] for name in names if item.get(name) is not None), None)
    if isinstance(text, Mapping):  # a logged search: {"query": {"text": …}}
        text = text.get("text")
    if not isinstance(text, str):
        raise DataError(
            f"{where}: no text of a query under {', '.join(names)} (found: "
            f"{', '.join(item) or 'nothing'}): name its column with --column"
        )
    given = next((item[name] for name in COUNT_NAMES if item.get(name) not in (None, "")), 1)
    is_number = isinstance(given, str) and given.isascii() and given.isdigit()
    count = int(str(given)[:20]) if is_number else given
    if isinstance(count, bool) or not isinstance(count, int) or not 1 <= count < MOST_SEARCHES:
        raise DataError(
            f"{where}: a count must be a whole number from 1, below {MOST_SEARCHES:,}; given "
            f"{given!r:.40}"
        )
    return text, count
