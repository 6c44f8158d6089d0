"""A log of searches: JSON Lines of ``SearchResult`` and ``QueryClassification`` records."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from fusion_bench.errors import DataError
from fusion_bench.io.file_bytes import read_text
from fusion_bench.io.json_objects import parse_object
from fusion_bench.schema import QueryClassification, SearchResult

#: A key that only a classification has.
CLASSIFICATION_KEYS = frozenset({"originalQuery", "original_query"})


@dataclass(frozen=True)
class LoggedSearch:
    """One search, and the line that it stands in.

    Attributes:
        where: File and line.
        result: What was asked and returned.
    """

    where: str
    result: SearchResult

    @property
    def offset(self) -> int:
        """Results that stand before its first."""
        return self.result.query.options.offset

    @property
    def end(self) -> int:
        """Rank of its last result."""
        return self.offset + len(self.result.results)


@dataclass(frozen=True)
class SearchLog:
    """A log in the order of its lines.

    Attributes:
        path: The file.
        searches: The searches.
        classifications: The last classification of each query, by its text.
    """

    path: Path
    searches: tuple[LoggedSearch, ...]
    classifications: dict[str, QueryClassification]


def read_log(path: Path) -> SearchLog:
    """Read a log of searches.

    Args:
        path: JSON Lines, gzip or not. A line with an ``originalQuery`` is a classification, every
            other one the result of a search. Blank lines are skipped.

    Raises:
        DataError: No search, a line that is no such record, or a result that is listed twice; says
            file and line.
    """
    searches: list[LoggedSearch] = []
    classifications: dict[str, QueryClassification] = {}
    for number, line in enumerate(read_text(path).split("\n"), start=1):
        if not line.strip():
            continue
        where = f"{path}:{number}"
        if CLASSIFICATION_KEYS.intersection(parse_object(line, where)):
            classification = QueryClassification.from_json(line, where)
            classifications[classification.original_query] = classification
        else:
            result = SearchResult.from_json(line, where)
            _check_results(result, where)
            searches.append(LoggedSearch(where, result))
    if not searches:
        raise DataError(f"{path}: no search: at least one SearchResult record a line is needed")
    return SearchLog(path, tuple(searches), classifications)


def _check_results(result: SearchResult, where: str) -> None:
    places: dict[str, int] = {}
    for place, item in enumerate(result.results):
        if item.id in places:
            raise DataError(
                f"{where}: results.{place}: {item.id!r} stands in results.{places[item.id]} too: "
                "keep one"
            )
        places[item.id] = place
    limit = result.query.options.limit
    if len(result.results) > limit:
        raise DataError(
            f"{where}: {len(result.results)} results, and query.options.limit is {limit}"
        )
