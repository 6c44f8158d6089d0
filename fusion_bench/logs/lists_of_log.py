"""The ranked lists in a log: one of each strategy, production's own, and the rerank scores."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import Final, TypeAlias

from fusion_bench.io.write_run import RunRows
from fusion_bench.logs.logged_queries import LoggedQuery
from fusion_bench.schema import SearchResultItem

#: Name of the list as it was returned.
PRODUCTION: Final = "production"
#: Name of the rerank list.
RERANK: Final = "rerank"
STRATEGIES: Final = ("keyword", "semantic", "graph")
#: The score of a result in a list; None = it is not in it.
ScoreOf: TypeAlias = Callable[[SearchResultItem], float | None]


def lists_of_strategies(queries: Sequence[LoggedQuery]) -> dict[str, RunRows]:
    """Strategy → its lists: the documents that it scores above 0, by that score.

    A score of 0 means that the strategy did not run or did not return the document (BR-013). A
    strategy without any document is left out.
    """
    lists = {name: _collect_rows(name, queries, _score_above_0(name)) for name in STRATEGIES}
    return {name: rows for name, rows in lists.items() if rows.queries}


def list_of_production(queries: Sequence[LoggedQuery]) -> RunRows:
    """The final lists, in the order in which they were returned."""
    return _collect_rows(PRODUCTION, queries, attrgetter("score"), as_returned=True)


def list_of_rerank(queries: Sequence[LoggedQuery]) -> RunRows | None:
    """The rerank scores, 0 to 1; None where nothing was reranked."""
    rows = _collect_rows(RERANK, queries, attrgetter("relevance.rerank"))
    return rows if rows.queries else None


def _score_above_0(strategy: str) -> ScoreOf:
    return lambda item: getattr(item.relevance, strategy) or None


def _collect_rows(
    name: str, queries: Sequence[LoggedQuery], score_of: ScoreOf, *, as_returned: bool = False
) -> RunRows:
    """The list of each query, by falling scores or as it was returned."""
    rows = RunRows(name, [], [], [], [], {})
    for query in queries:
        scored = [(score_of(item), item.id) for item in query.items]
        ranked = [(score, document) for score, document in scored if score is not None]
        if not as_returned:
            # The order in which the dataset's reader puts them: equal scores by id, from the end.
            ranked.sort(key=lambda pair: (pair[0], pair[1].encode()), reverse=True)
        for rank, (score, document) in enumerate(ranked, start=1):
            rows.queries.append(query.id)
            rows.documents.append(document)
            rows.ranks.append(rank)
            rows.scores.append(score)
    return rows
