"""The final lists of any system, document by document, with where each one comes from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from fusion_bench.data.aligned_runs import AlignedRuns, Ties
from fusion_bench.data.alignment import align
from fusion_bench.data.grouped_rows import (
    IdVocabulary,
    count_within_queries,
    query_of_rows,
    to_offsets,
)
from fusion_bench.data.ordering import (
    FloatArray,
    IntArray,
    cut_positions,
    make_arrays_readonly,
    score_keys,
)
from fusion_bench.data.qrels import Qrels
from fusion_bench.data.records import Query, ScoreSpace
from fusion_bench.data.run import Run
from fusion_bench.experiment.system import System
from fusion_bench.ranking.collapse import add_system_parents
from fusion_bench.ranking.plain_systems import fit_system, plain_systems
from fusion_bench.ranking.system_ranking import (
    SystemRanking,
    list_scores,
    rank_candidates,
    ranked_lists,
)


def list_parts(system: System, runs: AlignedRuns) -> list[tuple[IntArray, AlignedRuns, IntArray]]:
    """For each part of the queries: their indices, a view, and positions; 0 = not returned.

    Args:
        system: Fitted, where it has trained parts.
        runs: Aligned runs.
    """
    parts = []
    for index, plain, part in plain_systems(system, runs):
        view, (before_cut, _) = ranked_lists(plain, part)
        parts.append((index, view, cut_positions(before_cut, plain.top_k)))
    return parts


def rank_queries(system: System, runs: AlignedRuns) -> Iterator[tuple[IntArray, SystemRanking]]:
    """Rankings that together cover every query, each with the indices of its queries."""
    for index, plain, part in plain_systems(fit_system(system, runs), runs):
        yield index, rank_candidates(plain, part)


@dataclass(frozen=True, eq=False)
class FinalLists:
    """The final lists of one system: L rows, grouped by query, best first.

    Attributes:
        system: Its name.
        queries: The Q query ids.
        offsets: Shape (Q+1,).
        vocabulary: Document ids, sorted by bytes.
        documents: Shape (L,): codes into ``vocabulary``.
        scores: Shape (L,): whoever sorts by them, and by id as trec_eval does, finds this order;
            see ``list_scores`` and ``separate_ties``.
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
        make_arrays_readonly(self)

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
    spaces: Mapping[str, ScoreSpace] | None = None,
) -> AlignedRuns:
    """Align lists over every query that one of the runs answers, judged or not.

    Args:
        runs: The sources; at least one.
        rerankers: Rerank lists.
        queries: Types and groups, by query id.
        ties: The tie rule.
        spaces: What the scores of each rerank list mean, by its name.

    Raises:
        AlignmentError: As for :func:`~fusion_bench.data.alignment.align`.
    """
    answered = tuple(dict.fromkeys(query for run in runs for query in run.queries))
    nothing = np.zeros(0, dtype=np.int64)
    offsets = np.zeros(len(answered) + 1, dtype=np.int64)
    unjudged = Qrels(answered, offsets, runs[0].vocabulary, nothing, nothing.copy())
    return align(unjudged, runs, rerankers=rerankers, queries=queries, ties=ties, spaces=spaces)


def make_final_lists(system: System, runs: AlignedRuns) -> FinalLists:
    """Rank the candidates of every query as a system does.

    Args:
        system: The system.
        runs: Aligned runs.

    Raises:
        AlignmentError: The system does not fit these lists.
        ConfigError: As above.
    """
    names = (*system.runs, *sorted(system.reranker_names))
    runs = add_system_parents(runs, [system])
    parts = [
        _ranked_rows(ranking, index, names, runs) for index, ranking in rank_queries(system, runs)
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
    ranking: SystemRanking, index: IntArray, names: Sequence[str], lists: AlignedRuns
) -> tuple[IntArray, IntArray, FloatArray, IntArray, FloatArray]:
    """Query, document, score of each row, and its ranks and scores in each list.

    Args:
        ranking: Of the queries ``index``.
        index: Shape (q,).
        names: Of the S lists; one that took no part has rank 0 everywhere.
        lists: All lists; behind a collapse of one list that they were made into, a document has the
            ranks of its chunk.
    """
    runs = ranking.runs
    rows = ranking.list_rows()
    ranks = np.zeros((len(names), len(rows)), dtype=np.int64)
    scores = np.full((len(names), len(rows)), np.nan)
    given, at = runs, rows
    if runs.origin is not None and set(names).isdisjoint(runs.sources):
        chunks = (runs.documents if runs.chunks is None else runs.chunks)[rows]
        given, at = lists, lists.find_rows(index[runs.query_index[rows]], chunks)
    tables = (
        (given.sources, given.ranks, given.scores),
        (given.rerankers, given.rerank_ranks, given.rerank),
    )
    for known, rank_table, score_table in tables:
        for s, name in enumerate(known):
            if name in names:
                place = names.index(name)
                ranks[place], scores[place] = rank_table[s, at], score_table[s, at]
    query, documents = index[runs.query_index[rows]], runs.documents[rows]
    separated = separate_ties(list_scores(ranking, rows), query, documents)
    return query, documents, separated, ranks, scores


#: The share of a score by which the next one is lowered: a 32-bit float still tells them apart.
TIE_STEP: Final = 1e-6
#: The step below a score of 0.
LEAST_STEP: Final = 1e-30


def separate_ties(scores: FloatArray, query: IntArray, documents: IntArray) -> FloatArray:
    """(n,): the scores, lowered a little where sorting would turn equal ones round.

    Args:
        scores: Shape (n,), grouped by query, best first in each.
        query: Shape (n,).
        documents: Shape (n,): codes in the order of the ids; among equal scores, trec_eval puts
            the greatest first.
    """
    keys, is_same_list = score_keys(scores), np.diff(query) == 0
    turned = is_same_list & (keys[1:] == keys[:-1]) & (np.diff(documents) > 0)
    lowered = scores.copy()
    for first in np.flatnonzero(turned).tolist():
        row, limit = first, float(lowered[first])
        while row < len(turned) and is_same_list[row]:
            row, limit = row + 1, limit - (abs(limit) * TIE_STEP or LEAST_STEP)
            if lowered[row] <= limit:
                break
            lowered[row] = limit
    return lowered
