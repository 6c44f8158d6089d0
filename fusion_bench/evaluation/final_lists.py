"""The final lists of a system, document by document, with where each one comes from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from fusion_bench.data.aligned_runs import AlignedRuns, Ties
from fusion_bench.data.alignment import align
from fusion_bench.data.grouped_rows import count_within_queries, query_of_rows, to_offsets
from fusion_bench.data.ids import IdVocabulary
from fusion_bench.data.ordering import (
    BoolArray,
    FloatArray,
    IntArray,
    make_readonly,
    score_keys,
)
from fusion_bench.data.qrels import Qrels
from fusion_bench.data.records import Query, ScoreSpace
from fusion_bench.data.run import Run
from fusion_bench.evaluation.ranking import SystemRanking, rank_queries
from fusion_bench.experiment.system import System


@dataclass(frozen=True, eq=False)
class FinalLists:
    """The final lists of one system: L rows, grouped by query, best first.

    Attributes:
        system: Its name.
        queries: The Q query ids.
        offsets: Shape (Q+1,).
        vocabulary: Document ids, sorted by bytes.
        documents: Shape (L,): codes into ``vocabulary``.
        scores: Shape (L,): they fall, or stay equal, along each list; see :func:`list_scores`.
        sources: Names of the S lists that it is made from, rerank lists last.
        source_ranks: Shape (S, L): 1-based rank in each of them; 0 = not in it.
        source_scores: Shape (S, L): score in each of them; NaN = not in it.
    """

    system: str
    queries: tuple[str, ...]
    offsets: IntArray
    vocabulary: IdVocabulary
    documents: IntArray
    scores: FloatArray
    sources: tuple[str, ...]
    source_ranks: IntArray
    source_scores: FloatArray

    def __post_init__(self) -> None:
        for value in vars(self).values():
            if isinstance(value, np.ndarray):
                make_readonly(value)

    @property
    def ranks(self) -> IntArray:
        """(L,): 1-based."""
        return count_within_queries(self.offsets)

    @property
    def query_ids(self) -> list[str]:
        """The query of each row."""
        return [self.queries[q] for q in query_of_rows(self.offsets).tolist()]

    @property
    def document_ids(self) -> list[str]:
        """The document of each row."""
        known = list(self.vocabulary)
        return [known[code] for code in self.documents.tolist()]

    def to_run(self) -> Run:
        """The lists as a run under the system's name; queries without a document are left out."""
        is_answered = np.diff(self.offsets) > 0
        queries = (q for q, is_kept in zip(self.queries, is_answered, strict=True) if is_kept)
        return Run(
            name=self.system,
            queries=tuple(queries),
            offsets=to_offsets(np.diff(self.offsets)[is_answered]),
            vocabulary=self.vocabulary,
            documents=self.documents,
            scores=self.scores,
            ranks=self.ranks,
        )


def align_all_queries(
    runs: Sequence[Run],
    *,
    rerankers: Sequence[Run] = (),
    queries: Mapping[str, Query] | None = None,
    ties: Ties = "trec",
) -> AlignedRuns:
    """Align lists over every query that one of the runs answers, judged or not.

    Args:
        runs: The sources; at least one.
        rerankers: Rerank lists.
        queries: Types and groups, by query id.
        ties: The tie rule.

    Raises:
        AlignmentError: As for :func:`~fusion_bench.data.alignment.align`.
    """
    answered = tuple(dict.fromkeys(query for run in runs for query in run.queries))
    nothing = np.zeros(0, dtype=np.int64)
    offsets = np.zeros(len(answered) + 1, dtype=np.int64)
    unjudged = Qrels(answered, offsets, runs[0].vocabulary, nothing, nothing.copy())
    return align(unjudged, runs, rerankers=rerankers, queries=queries, ties=ties)


def make_final_lists(
    system: System, runs: AlignedRuns, spaces: Mapping[str, ScoreSpace] | None = None
) -> FinalLists:
    """Rank the candidates of every query as a system does.

    Args:
        system: The system.
        runs: Aligned runs.
        spaces: Score space of each rerank list.

    Raises:
        AlignmentError: The system does not fit these lists.
        ConfigError: As above.
    """
    names = (*system.runs, *sorted(system.reranker_names))
    parts = [
        _ranked_rows(ranking, index, names)
        for index, ranking in rank_queries(system, runs, spaces or {})
    ]
    query, documents, scores, ranks, source_scores = (
        np.concatenate(columns, axis=-1) for columns in zip(*parts, strict=True)
    )
    order = np.argsort(query, kind="stable")  # each part has its queries in order
    return FinalLists(
        system=system.name,
        queries=runs.queries,
        offsets=to_offsets(np.bincount(query, minlength=len(runs.queries))),
        vocabulary=runs.vocabulary,
        documents=documents[order],
        scores=scores[order],
        sources=names,
        source_ranks=ranks[:, order],
        source_scores=source_scores[:, order],
    )


def _ranked_rows(
    ranking: SystemRanking, index: IntArray, names: Sequence[str]
) -> tuple[IntArray, IntArray, FloatArray, IntArray, FloatArray]:
    """Query, document, score of each row, and its ranks and scores in each list.

    Args:
        ranking: Of the queries ``index``.
        index: Shape (q,).
        names: Of the S lists; one that took no part has rank 0 everywhere.
    """
    runs = ranking.runs
    rows = np.flatnonzero(ranking.positions > 0)
    rows = rows[np.lexsort((ranking.positions[rows], runs.query_index[rows]))]
    ranks = np.zeros((len(names), len(rows)), dtype=np.int64)
    scores = np.full((len(names), len(rows)), np.nan)
    tables = (
        (runs.sources, runs.ranks, runs.scores),
        (runs.rerankers, runs.rerank_ranks, runs.rerank),
    )
    for known, rank_table, score_table in tables:
        for s, name in enumerate(known):
            if name in names:
                place = names.index(name)
                ranks[place], scores[place] = rank_table[s, rows], score_table[s, rows]
    query = index[runs.query_index[rows]]
    return query, runs.documents[rows], list_scores(ranking, rows), ranks, scores


def list_scores(ranking: SystemRanking, rows: IntArray) -> FloatArray:
    """(n,): scores that no list gains along its ranks: whoever sorts by them finds its order.

    Documents that the reranker did not score rank below those that it did, whatever their fused
    score. Where that is too high, it is lowered, by one constant for all of them in a list; where
    that would round different scores to one, they count down from the reranker's least score.

    Args:
        ranking: The ranking.
        rows: Its candidates, best first within each query.
    """
    scores, tiers = ranking.sort_scores[rows].copy(), ranking.tiers[rows]
    query = ranking.runs.query_index[rows]
    for tier in np.unique(tiers)[1:]:
        floor = _least_by_query(scores, query, tiers < tier, len(ranking.runs.queries))
        top = -_least_by_query(-scores, query, tiers == tier, len(ranking.runs.queries))
        is_high = np.isfinite(floor) & np.isfinite(top) & (top >= floor)
        shift = np.where(is_high, top - floor + 1, 0.0)
        lower = np.flatnonzero((tiers == tier) & is_high[query])
        if len(lower):
            scores[lower] = _lower_scores(scores[lower], query[lower], shift, floor)
    return scores


def _lower_scores(
    scores: FloatArray, query: IntArray, shift: FloatArray, floor: FloatArray
) -> FloatArray:
    """(n,): scores below the floor of their query, which fall wherever they fell.

    Args:
        scores: Shape (n,), grouped by query, falling within each.
        query: Shape (n,).
        shift: Shape (Q,): what is taken from each score.
        floor: Shape (Q,).
    """
    lowered = scores - shift[query]
    is_same = np.diff(query) == 0
    falls = is_same & (np.diff(score_keys(scores)) < 0)
    is_rounded = is_same & (falls != (np.diff(score_keys(lowered)) < 0))
    is_counted = np.isin(query, query[1:][is_rounded]) | np.isin(
        query, query[score_keys(lowered) >= score_keys(floor)[query]]
    )
    places = np.cumsum(np.concatenate(([0], falls))) + 1
    places -= places[np.searchsorted(query, query)] - 1
    step = np.maximum(1.0, 1e-10 * np.abs(floor))
    return np.where(is_counted, floor[query] - step[query] * places, lowered)


def _least_by_query(
    scores: FloatArray, query: IntArray, is_counted: BoolArray, queries: int
) -> FloatArray:
    """(Q,): the least of the scores that count; inf where none does."""
    least = np.full(queries, np.inf)
    np.minimum.at(least, query[is_counted], scores[is_counted])
    return least
