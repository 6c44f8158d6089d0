"""A log of searches: its queries, their lists, what production was set to."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from pathlib import Path
from typing import Any, Final, TypeAlias

from fusion_bench.data.records import Query
from fusion_bench.errors import DataError
from fusion_bench.importers.options import OnDuplicate
from fusion_bench.io.json_objects import parse_object
from fusion_bench.io.raw_files import read_text
from fusion_bench.io.write_run import RunRows
from fusion_bench.schema import (
    CRAGScore,
    QueryClassification,
    SearchOptions,
    SearchQuery,
    SearchResult,
    SearchResultItem,
    SearchStrategy,
)

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


def _read_searches(path: Path) -> tuple[list[LoggedSearch], dict[str, QueryClassification]]:
    """The searches, in order, and classifications by the query's text."""
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
    return searches, classifications


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
        unsearched: Texts that were classified, and not searched for.
    """

    queries: tuple[LoggedQuery, ...]
    without_start: tuple[str, ...]
    repeated: int
    unsearched: tuple[str, ...]


def read_log(
    path: Path, known: Mapping[str, Query] | None, *, on_duplicate: OnDuplicate
) -> LoggedQueries:
    """Read a log of searches, and put those for each text together.

    Searches with the same text are one query. Their offsets may differ: they are its pages. Two
    searches for one page count once where they return the same.

    Args:
        path: JSON Lines, gzip or not. A line with an ``originalQuery`` is a classification, every
            other one the result of a search. Blank lines are skipped.
        known: Queries by id, whose texts name the logged ones; None = ``q1``, ``q2``, …
        on_duplicate: Two searches for one page that differ: an error, or the last one counts.

    Raises:
        DataError: No search, a line that is no such record, a result that is listed twice, a text
            that ``known`` does not have, two searches that differ, or no query whose results were
            logged from the first on.
    """
    searches, classifications = _read_searches(path)
    pages, repeated = _find_pages(searches, on_duplicate)
    names = _name_queries(list(pages), known, path)
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
                classification=classifications.get(text),
                known=query,
            )
        )
    if not queries:
        raise DataError(
            f"{path}: the first results of no query were logged (query.options.offset is "
            "above 0 everywhere): log the first pages"
        )
    unsearched = tuple(text for text in classifications if text not in pages)
    return LoggedQueries(tuple(queries), tuple(without_start), repeated, unsearched)


def _find_pages(
    searches: Iterable[LoggedSearch], on_duplicate: OnDuplicate
) -> tuple[dict[str, dict[int, LoggedSearch]], int]:
    """The searches for each text by their offset, and how many of them another one replaced."""
    pages: dict[str, dict[int, LoggedSearch]] = {}
    repeated = 0
    for search in searches:
        of_query = pages.setdefault(search.result.query.text, {})
        earlier = of_query.get(search.offset)
        if earlier is not None:
            repeated += 1
        if on_duplicate == "error":
            for other in of_query.values():
                _check_agreement(other, search)
        of_query[search.offset] = search
    return pages, repeated


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
    texts: list[str], known: Mapping[str, Query] | None, path: Path
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
            f"{path}: no query has the text {missing!r:.80}: add it to the file of queries"
        )
    return {text: by_text[text] for text in texts}


#: Name of the list as it was returned.
PRODUCTION: Final = "production"
#: Name of the rerank list.
RERANK: Final = "rerank"
STRATEGIES: Final = ("keyword", "semantic", "graph")
#: The score of a result in a list; None = it is not in it.
ScoreOf: TypeAlias = Callable[[SearchResultItem], float | None]


def collect_lists(queries: Sequence[LoggedQuery]) -> dict[str, RunRows]:
    """The lists of each strategy, of production, and of the reranker, where they have documents.

    Those of a strategy hold the documents that it scores above 0, by that score: 0 means that it
    did not run or did not return the document (BR-013). Production's have the logged order, the
    reranker's have scores from 0 to 1.
    """
    lists = {name: _collect_rows(name, queries, _score_above_0(name)) for name in STRATEGIES}
    lists[PRODUCTION] = _collect_rows(PRODUCTION, queries, attrgetter("score"), as_returned=True)
    lists[RERANK] = _collect_rows(RERANK, queries, attrgetter("relevance.rerank"))
    return {name: rows for name, rows in lists.items() if rows.queries or name == PRODUCTION}


def _score_above_0(strategy: str) -> ScoreOf:
    return lambda item: getattr(item.relevance, strategy) or None


def _collect_rows(
    name: str, queries: Sequence[LoggedQuery], score_of: ScoreOf, *, as_returned: bool = False
) -> RunRows:
    """The list of each query, by falling scores or as it was returned."""
    rankings: dict[str, list[tuple[str, float]]] = {}
    for query in queries:
        scored = [(item.id, score_of(item)) for item in query.items]
        ranked = [(document, score) for document, score in scored if score is not None]
        if not as_returned:
            ranked.sort(key=lambda pair: (pair[1], pair[0].encode()), reverse=True)
        rankings[query.id] = ranked
    return RunRows.from_rankings(name, rankings)


#: A query is as good as its best result.
VERDICTS: Final = ("correct", "ambiguous", "incorrect")


def describe_query(query: LoggedQuery) -> dict[str, Any]:
    """The query's line in ``queries.jsonl``.

    Its type is the one that the search ran with. A logged classification that leads to that type
    gives type and confidence. The verdict of corrective RAG is that of the best result.
    """
    facts: dict[str, Any] = {"id": query.id, "text": query.query.text}
    facts["type"] = str(query.query.type)
    classified = query.classification
    if classified is not None and query.query.type in (classified.type, classified.sure_type):
        facts |= {"type": str(classified.type), "confidence": classified.confidence}
    scores = [item.relevance.crag for item in query.items if item.relevance.crag is not None]
    if scores:
        facts |= _describe_verdict(scores)
    if query.known is not None:
        names = ("intent", "group", "split")
        given = {name: getattr(query.known, name) for name in names}
        facts |= {name: value for name, value in given.items() if value is not None}
    return facts


def _describe_verdict(scores: list[CRAGScore]) -> dict[str, Any]:
    best = min(scores, key=lambda score: VERDICTS.index(score.relevance))
    facts: dict[str, Any] = {
        "crag": best.relevance,
        "crag_confidence": best.confidence,
        "needs_web_search": best.needs_web_search,
    }
    refined = next((score.refined_query for score in scores if score.refined_query), None)
    return facts if refined is None else {**facts, "refined_query": refined}
