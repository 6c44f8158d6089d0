"""The lists of one query as aligned runs, which everything behind them shares with the bench."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from fusion_bench.data.aligned_runs import AlignedRuns, Ties
from fusion_bench.data.ordering import FloatArray, IntArray, positions
from fusion_bench.data.records import Query
from fusion_bench.data.rows.read_options import ReadOptions
from fusion_bench.data.run import Run
from fusion_bench.data.switches import Condition, Switch, meets_condition
from fusion_bench.evaluation.ranking.final_lists import align_all_queries
from fusion_bench.live.hits import Hit


@dataclass(frozen=True)
class ListRules:
    """How the lists of each source are read.

    Attributes:
        roles: Roles of each source, by name.
        options: How scores become ranks, by name of a source or of a rerank list.
        ties: The tie rule.
        conditions: When a source is on, by name; one without a condition always is.
    """

    roles: Mapping[str, frozenset[str]]
    options: Mapping[str, ReadOptions]
    ties: Ties = "trec"
    conditions: Mapping[str, Condition] = field(default_factory=dict)

    def explain_off(self, query: Query) -> dict[str, str]:
        """Source that is off for a query → why: ``intent is rules``."""
        return {
            name: Switch(frozenset(), condition).explain_off(query)
            for name, condition in self.conditions.items()
            if not meets_condition(query, condition)
        }

    def options_of(self, name: str) -> ReadOptions:
        """How a list is read; a document that it names twice keeps its best rank."""
        return replace(self.options.get(name, ReadOptions()), on_duplicate="best_rank")


def align_lists(
    query: Query, lists: Mapping[str, Sequence[Hit]], names: Sequence[str], rules: ListRules
) -> AlignedRuns | None:
    """The lists of one query on one set of candidates; None where all are empty.

    Args:
        query: The query.
        lists: By name of the source; one that is off may be absent.
        names: The sources, in the order that ``first_seen`` ties go by.
        rules: How the lists are read.
    """
    off = rules.explain_off(query)
    given = {name: lists[name] for name in names if name not in off and lists[name]}
    runs = [_make_run(query, name, hits, rules) for name, hits in given.items()]
    filled = [run for run in runs if len(run.documents)]
    if not filled:
        return None
    aligned = align_all_queries(filled, queries={query.id: query}, ties=rules.ties)
    for name in names:
        if name not in aligned.sources:
            size = len(aligned.documents)
            roles = rules.roles.get(name, frozenset())
            nothing = np.zeros(size, dtype=np.int64), np.full(size, np.nan)
            switch = Switch(frozenset(), rules.conditions[name]) if name in off else None
            aligned = aligned.add_source(name, roles, *nothing, switch)
    return aligned.restrict(names) if rules.ties == "first_seen" else aligned


def _make_run(query: Query, name: str, hits: Sequence[Hit], rules: ListRules) -> Run:
    options = rules.options_of(name)
    ids, scores = [hit.id for hit in hits], [hit.score for hit in hits]
    return Run.from_rows(
        name,
        [query.id] * len(ids),
        ids,
        scores,
        ranks=range(1, len(ids) + 1) if options.rank_from == "column" else None,
        roles=rules.roles.get(name, frozenset()),
        read_options=options,
    )


def add_rerank_list(
    runs: AlignedRuns, name: str, hits: Sequence[Hit], rules: ListRules
) -> AlignedRuns:
    """The runs of one query with a rerank list, in place of one of that name.

    Args:
        runs: Of one query.
        name: The rerank list's name.
        hits: Its scores; documents that are no candidates are left out.
        rules: How the list is read.
    """
    ranks: IntArray = np.zeros(len(runs.documents), dtype=np.int64)
    scores: FloatArray = np.full(len(runs.documents), np.nan)
    options = rules.options_of(name)
    row_of = {document: row for row, document in enumerate(candidate_ids(runs))}
    best: dict[int, float] = {}
    for hit in hits if options.rank_from == "column" else sorted(hits, key=lambda h: -h.score):
        if hit.id in row_of:
            best.setdefault(row_of[hit.id], hit.score)
    if best:
        rows = np.array(list(best))
        scores[rows] = list(best.values())
        ranks[rows] = _rank_scores(scores[rows], runs.documents[rows], options)
    kept = [i for i, known in enumerate(runs.rerankers) if known != name]
    return replace(
        runs,
        rerankers=(*(runs.rerankers[i] for i in kept), name),
        rerank=np.vstack([runs.rerank[kept], scores]),
        rerank_ranks=np.vstack([runs.rerank_ranks[kept], ranks]),
    )


def _rank_scores(scores: FloatArray, codes: IntArray, options: ReadOptions) -> IntArray:
    """(n,): ranks as a file's rows in this order would get them."""
    if options.rank_from == "column":
        return np.arange(1, len(scores) + 1)
    ties = None if options.source_ties == "file" else ~codes
    return positions(scores, np.array([0, len(scores)]), tie_order=ties)


def candidate_ids(runs: AlignedRuns) -> list[str]:
    """(N,): the id of each candidate."""
    known = list(runs.vocabulary)
    return [known[code] for code in runs.documents.tolist()]
