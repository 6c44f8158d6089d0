"""The queries of a log: repeated searches and pages put together, and named."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from fusion_bench.data.records import Query
from fusion_bench.errors import DataError
from fusion_bench.logs.read_log import LoggedSearch, SearchLog
from fusion_bench.schema import (
    QueryClassification,
    SearchOptions,
    SearchQuery,
    SearchResultItem,
    SearchStrategy,
)

#: What to do about two searches for one page of a query that differ.
OnDuplicate: TypeAlias = Literal["error", "last"]


@dataclass(frozen=True)
class LoggedQuery:
    """One query with all that was returned for it.

    Attributes:
        id: Its id.
        pages: Its searches, by offset; together they have the ranks from 1 on.
        items: The results of all pages, best first.
        classification: What the classifier said; None = not logged.
        known: What a file of queries says of it; None = there is none.
    """

    id: str
    pages: tuple[LoggedSearch, ...]
    items: tuple[SearchResultItem, ...]
    classification: QueryClassification | None = None
    known: Query | None = None

    @property
    def query(self) -> SearchQuery:
        """The query of the first page."""
        return self.pages[0].result.query

    @property
    def top_k(self) -> int:
        """The rank up to which results were asked for."""
        options = self.pages[-1].result.query.options
        return options.offset + options.limit

    @property
    def enabled(self) -> tuple[SearchStrategy, ...]:
        """The strategies that ran."""
        return self.pages[0].result.strategies.enabled


@dataclass(frozen=True)
class LoggedQueries:
    """The queries of a log.

    Attributes:
        queries: In the order in which they were first asked.
        without_start: Texts of queries that are left out, as their first results were not logged.
        repeated: Searches that were left out, as another has the same page of the same query.
    """

    queries: tuple[LoggedQuery, ...]
    without_start: tuple[str, ...]
    repeated: int


def group_searches(
    log: SearchLog,
    known: Mapping[str, Query] | None = None,
    *,
    on_duplicate: OnDuplicate = "error",
) -> LoggedQueries:
    """Put the searches for each text together.

    Searches with the same text are one query. Their offsets may differ: they are its pages. Two
    searches for one page count once where they return the same.

    Args:
        log: The log.
        known: Queries by id, whose texts name the logged ones; by default ``q1``, ``q2``, …
        on_duplicate: Two searches for one page that differ: an error, or the last one counts.

    Raises:
        DataError: A text that ``known`` does not have, two searches that differ, or no query whose
            results were logged from the first on.
    """
    pages: dict[str, dict[int, LoggedSearch]] = {}
    repeated = 0
    for search in log.searches:
        of_query = pages.setdefault(search.result.query.text, {})
        earlier = of_query.get(search.offset)
        if earlier is not None:
            repeated += 1
        if on_duplicate == "error":
            for other in of_query.values():
                _check_agreement(other, search)
        of_query[search.offset] = search
    names = _name_queries(list(pages), known, log)
    queries = []
    without_start = []
    for text, by_offset in pages.items():
        joined = _join_pages(by_offset)
        if not joined:
            without_start.append(text)
            continue
        items = {item.id: item for page in reversed(joined) for item in page.result.results}
        order = dict.fromkeys(item.id for page in joined for item in page.result.results)
        query = known[names[text]] if known else None
        queries.append(
            LoggedQuery(
                id=names[text],
                pages=tuple(joined),
                items=tuple(items[name] for name in order),
                classification=log.classifications.get(text),
                known=query,
            )
        )
    if not queries:
        raise DataError(
            f"{log.path}: the first results of no query were logged (query.options.offset is "
            "above 0 everywhere): log the first pages"
        )
    return LoggedQueries(tuple(queries), tuple(without_start), repeated)


def _check_agreement(first: LoggedSearch, second: LoggedSearch) -> None:
    """Refuse two searches for one text that differ in more than their page."""
    if first.offset == second.offset:
        agree = first.result.results == second.result.results and _page_free(first) == _page_free(
            second
        )
    else:
        agree = _page_free(first) == _page_free(second)
    if not agree:
        raise DataError(
            f"{second.where}: the query {second.result.query.text!r:.80} was searched differently "
            f"in {first.where}: keep one, or let the last count (--on-duplicate last)"
        )


def _page_free(search: LoggedSearch) -> SearchQuery:
    """The query without its page."""
    query = search.result.query
    base = SearchOptions()
    options = query.options.model_copy(update={"offset": base.offset, "limit": base.limit})
    return query.model_copy(update={"options": options})


def _join_pages(by_offset: Mapping[int, LoggedSearch]) -> list[LoggedSearch]:
    """The pages from the first result on, as far as none is missing."""
    joined: list[LoggedSearch] = []
    for offset in sorted(by_offset):
        if offset > (joined[-1].end if joined else 0):
            break
        joined.append(by_offset[offset])
    return joined


def _name_queries(
    texts: list[str], known: Mapping[str, Query] | None, log: SearchLog
) -> dict[str, str]:
    """Text → query id."""
    if known is None:
        return {text: f"q{n}" for n, text in enumerate(texts, start=1)}
    by_text: dict[str, str] = {}
    for query in known.values():
        if query.text in by_text and query.text in texts:
            raise DataError(
                f"queries {by_text[query.text]!r} and {query.id!r} have one text, "
                f"{query.text!r:.80}: the log cannot tell them apart"
            )
        if query.text is not None:
            by_text[query.text] = query.id
    missing = next((text for text in texts if text not in by_text), None)
    if missing is not None:
        raise DataError(
            f"{log.path}: no query has the text {missing!r:.80}: add it to the file of queries"
        )
    return {text: by_text[text] for text in texts}
