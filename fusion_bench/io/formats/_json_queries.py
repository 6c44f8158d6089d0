"""The queries of the lists in an answer; and those that a batch of searches asked."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from fusion_bench.data.document_rows import COLUMN_NAMES
from fusion_bench.errors import DataError
from fusion_bench.io.formats._base import match_columns
from fusion_bench.io.json_objects import parse_object, require_text
from fusion_bench.io.layouts.lists import QUERY_LISTS, Answer, FoundList, find_value
from fusion_bench.io.raw_files import ColumnNames, read_text

#: Names of a query that are no text of it.
QUERY_IDS: Final = tuple(name for name in COLUMN_NAMES["query"] if "id" in name)


class QueryNamer:
    """Finds the query of each list in a file's answers.

    Attributes:
        columns: What a key holds → its name, where it has none of the usual names.
        requests: Queries of the lists that name none, in their order.
        asked: How many of them are taken.
    """

    def __init__(self, columns: ColumnNames, requests: Sequence[str]) -> None:
        self.columns, self.requests, self.asked = columns, requests, 0

    def name_lists(self, answer: Answer, known: str | None, where: str) -> Sequence[str | None]:
        """Return the query of each list; None where nothing says it.

        Args:
            answer: The lists.
            known: The query, where the name of the file says it.
            where: Prefix of a message.

        Raises:
            DataError: A batch names no queries, another number of them, or one twice.
        """
        names = self._find_names(answer, known, where)
        for name, count in Counter(names).items():
            if count > 1 and name is not None:
                raise DataError(f"{where}: the query {name!r} has {count} answers: keep one")
        return names

    def check_requests(self, path: Path) -> None:
        """Refuse requests that are left over."""
        if self.asked < len(self.requests):
            raise DataError(
                f"{path}: {len(self.requests)} requests are given, and the file has {self.asked} "
                "lists without a query: give the requests of this file alone"
            )

    def _find_names(self, answer: Answer, known: str | None, where: str) -> Sequence[str | None]:
        lists = answer.lists
        query = self._find_query(answer, known, where)
        names = [ranked.query or self._find_inner(ranked, answer, where) for ranked in lists]
        is_batch = any(ranked.number for ranked in lists)
        given: Sequence[Any] | None = _find_given_names(answer, where) if is_batch else None
        if given is None and len(lists) == 1 and query is not None:
            return [names[0] or query]
        if given is None and self.requests and (is_batch or names == [None]):
            start, self.asked = self.asked, self.asked + len(lists)
            given = self.requests[start : self.asked]
        if given is None and (not is_batch or None not in names):
            return names
        if given is None or len(given) != len(lists):
            raise DataError(
                f"{where}: a batch has {len(lists)} responses in the order of its requests and "
                'names no query: add the id of each, as in {"queries": ["q1", "q2", …], '
                '"response": …}, or give the file of the requests, as in requests: FILE (given: '
                f"{'none' if given is None else f'{len(given)} ids'})"
            )
        return [require_text(name, "query", where) for name in given]

    def _find_inner(self, ranked: FoundList, answer: Answer, where: str) -> str | None:
        """The query that an item of a batch names itself."""
        is_inner = ranked.owner is not answer.body and isinstance(ranked.owner, dict)
        return _find_text([ranked.owner], answer.layout.query, {}, where) if is_inner else None

    def _find_query(self, answer: Answer, known: str | None, where: str) -> str | None:
        """The query's id, from the file's name or the object; None if neither has it.

        Raises:
            DataError: Both have one, and they differ.
        """
        envelope = answer.envelope
        if known is not None:
            for key in QUERY_IDS:
                inner = envelope.get(key, known)
                if isinstance(inner, str | int) and str(inner) != known:
                    raise DataError(
                        f"{where}: {key} {str(inner)!r} is not the name of the file, {known!r}: "
                        f"rename the file, or delete {key}"
                    )
            return known
        present = {role: name for role, name in self.columns.items() if name in envelope}
        return _find_text([envelope, answer.body], answer.layout.query, present, where)


def _find_text(
    holders: Sequence[Any], paths: Sequence[str], columns: ColumnNames, where: str
) -> str | None:
    """The query's id at the first path that has one; else under a usual name of the first."""
    found = [find_value(holder, path) for holder in holders for path in paths]
    names = match_columns(list(holders[0]), ("query",), where, columns)
    if names:
        found.insert(0 if columns else len(found), holders[0][names["query"]])
    given = next((value for value in found if isinstance(value, str | int)), None)
    return None if given is None else require_text(given, "query", where)


def _find_given_names(answer: Answer, where: str) -> list[Any] | None:
    """The queries of a batch that are listed beside it."""
    holders = [each for each in (answer.envelope, answer.body) if isinstance(each, dict)]
    given = {key: each[key] for each in holders for key in each if key in QUERY_LISTS}
    lists = [
        names
        for names in given.values()
        if isinstance(names, list) and not any(isinstance(name, dict) for name in names)
    ]
    if any(names != lists[0] for names in lists):
        raise DataError(f"{where}: {' and '.join(given)} do not name the same queries: keep one")
    return lists[0] if lists else None


#: Keys of a request that hold the query's id.
ID_KEYS: Final = (*QUERY_IDS, "id", "_id", "_name")
#: Keys of a request that hold the query's text.
TEXT_KEYS: Final = frozenset({"query", "text", "q"})
#: Keys of the first of the two lines of a request of ``_msearch``; it may be empty.
HEADER_KEYS: Final = frozenset(
    {"index", "search_type", "preference", "routing", "request_cache", "allow_no_indices"}
    | {"expand_wildcards", "ignore_unavailable", "allow_partial_search_results"}
)


def read_requests(path: Path, texts: Mapping[str, str] | None = None) -> tuple[str, ...]:
    """Return the id of each query that a batch asked, in order.

    Args:
        path: The requests of ``_msearch`` (a line of the index, a line of the search), or one
            query a line: its id, its text, or an object with an ``id``.
        texts: Text of a query → its id, where they are known. A text that is none of them counts
            as an id.

    Raises:
        DataError: A line names no query, or texts of several.
    """
    lines = [
        (f"{path}:{number}", line.strip())
        for number, line in enumerate(read_text(path).split("\n"), start=1)
        if line.strip()
    ]
    if not lines:
        raise DataError(f"{path}: the file is empty: one request a line is needed")
    if not all(line.startswith("{") for _, line in lines):
        return tuple((texts or {}).get(line, line) for _, line in lines)
    objects = [(where, parse_object(line, where)) for where, line in lines]
    if len(objects) % 2 == 0 and all(item.keys() <= HEADER_KEYS for _, item in objects[::2]):
        objects = objects[1::2]
    return tuple(_find_request(item, texts or {}, where) for where, item in objects)


def _find_request(request: dict[str, Any], texts: Mapping[str, str], where: str) -> str:
    """The query of one request: its id, or the id of the only text in it that is known."""
    cells = list(_list_cells(request))
    ids = [value for key, value in cells if key in ID_KEYS]
    if ids:
        return require_text(ids[0], "query", where)
    found = {texts[value]: None for _, value in cells if isinstance(value, str) and value in texts}
    if not texts:
        named = (value for key, value in cells if key in TEXT_KEYS and isinstance(value, str))
        found = dict.fromkeys(named)
    if len(found) != 1:
        raise DataError(
            f"{where}: no query is known by this request ({json.dumps(request)[:60]}): write one "
            "id a line, in the order of the requests"
        )
    return next(iter(found))


def _list_cells(value: Any) -> Iterator[tuple[str, Any]]:  # noqa: ANN401 - any JSON
    """The keys of an object and of those inside it, with the values that are no objects."""
    for key, inner in value.items():
        for each in inner if isinstance(inner, list) else [inner]:
            if isinstance(each, dict):
                yield from _list_cells(each)
            else:
                yield key, each
