"""The documents that chunks belong to, and chunks merged into them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from fusion_bench.data.aligned_runs import AlignedRuns, ChunkLists
from fusion_bench.data.alignment import TOP
from fusion_bench.data.grouped_rows import (
    encode_ids,
    find_keys,
    query_of_rows,
    to_offsets,
    unite_vocabularies,
)
from fusion_bench.data.ordering import BoolArray, ChunkScore, IntArray, merge_scores, positions
from fusion_bench.errors import AlignmentError


def add_parents(
    runs: AlignedRuns, rule: str, parent_of: Callable[[str], str | None]
) -> AlignedRuns:
    """Give the ids of the runs their parents under a rule; the vocabulary gets the parents' ids.

    Args:
        runs: Aligned runs, with every repeat.
        rule: Tells the parents from those of other rules.
        parent_of: Returns the parent of an id; None = it has none.
    """
    if rule in runs.parents:
        return runs
    names = [parent_of(name) for name in runs.vocabulary]
    column = encode_ids([name for name in names if name])
    vocabulary, (old, new) = unite_vocabularies([runs.vocabulary, column.vocabulary])
    parents = {}
    for known, codes in runs.parents.items():
        parents[known] = np.full(len(vocabulary), -1)
        parents[known][old] = np.where(codes < 0, -1, old[codes])
    parents[rule] = np.full(len(vocabulary), -1)
    parents[rule][old[[bool(name) for name in names]]] = new[column.codes]
    recoded = replace(
        runs,
        vocabulary=vocabulary,
        documents=old[runs.documents],
        parents=parents,
        later=tuple(add_parents(each, rule, parent_of) for each in runs.later),
    )
    return _count_common_parents(recoded, rule)


def judged_codes(runs: AlignedRuns) -> IntArray:
    """Codes of the documents that are judged for any query."""
    if runs.qrels is None:
        return np.zeros(0, dtype=np.int64)
    _, (known, codes) = unite_vocabularies([runs.vocabulary, runs.qrels.vocabulary])
    return np.flatnonzero(np.isin(known, codes[runs.qrels.documents]))


def _count_common_parents(runs: AlignedRuns, rule: str) -> AlignedRuns:
    """Count common documents by parent in each list that names parents of judged ids alone."""
    judged, parents = judged_codes(runs), runs.parents[rule][runs.documents]
    kinds = np.stack([runs.documents, np.where(parents < 0, runs.documents, parents)])
    is_judged = np.isin(kinds, judged)
    places = np.vstack([runs.ranks, runs.rerank_ranks])
    has_judged = (places > 0) @ is_judged.T
    has_chunks = (~has_judged[:, 0] & has_judged[:, 1]).astype(np.int64)
    if not has_chunks.any():
        return runs
    members = np.zeros((len(places) + 1, len(runs.vocabulary)), dtype=np.int64)
    for member, row, kind in zip(members, places, has_chunks, strict=False):
        member[kinds[kind, row > 0]] = 1
    members[-1, judged] = 1
    is_top = (places > 0) & (places <= TOP)
    top = np.column_stack([is_top.sum(axis=1), (is_top & is_judged[has_chunks]).sum(axis=1)])
    return replace(runs, common_documents=members @ members.T, top_documents=top)


def keep_best_chunks(lists: ChunkLists, count: int) -> AlignedRuns:
    """The lists with so many chunks of each parent, the best ones; ranks count anew."""
    runs, parents = lists.runs, lists.parents
    owner = np.unique(_group_keys(runs, parents), return_inverse=True)[1]
    ranks, scores = np.zeros_like(runs.ranks), np.full_like(runs.scores, np.nan)
    for s, given in enumerate(runs.ranks):
        rows, starts = _group_chunks(owner, given)
        sizes = np.diff(starts, append=len(rows))
        kept = rows[np.arange(len(rows)) - np.repeat(starts, sizes) < count]
        scores[s, kept] = runs.scores[s, kept]
        ranks[s] = positions(
            np.where(np.isnan(scores[s]), np.nan, 0), runs.offsets, tie_order=given
        )
    return replace(runs, ranks=ranks, scores=scores, origin=lists).restrict(runs.sources)


def merge_chunks(lists: ChunkLists, score: ChunkScore, k: float) -> AlignedRuns:
    """The lists with one candidate for all chunks of a parent.

    Args:
        lists: The chunks.
        score: What makes one score of a list's scores.
        k: Of reciprocal ranks.

    Raises:
        AlignmentError: A negative score that would be summed up.
    """
    runs, parents = lists.runs, lists.parents
    keys, owner = np.unique(_group_keys(runs, parents), return_inverse=True)
    query, code = np.divmod(keys, len(runs.vocabulary) + 1)
    documents = len(runs.vocabulary) - code
    offsets = to_offsets(np.bincount(query, minlength=len(runs.queries)))
    ranks = np.zeros((len(runs.sources), len(keys)), dtype=np.int64)
    scores = np.full(ranks.shape, np.nan)
    for s, given in enumerate(runs.ranks):
        rows, starts = _group_chunks(owner, given)
        values = runs.scores[s, rows]
        if score == "sum" and (values < 0).any():
            raise _negative_error(runs, s, int(rows[np.argmax(values < 0)]))
        merged, best = owner[rows[starts]], np.zeros(len(keys), dtype=np.int64)
        best[merged] = given[rows[starts]]
        scores[s, merged] = merge_scores(values, given[rows], starts, score, k)
        ranks[s] = positions(scores[s], offsets, tie_order=best)
    order = lists.order_chunks(slice(None))
    chosen = order[np.argsort(owner[order], kind="stable")]
    chosen = chosen[np.flatnonzero(np.diff(owner[chosen], prepend=-1))]
    grades, judged = _find_grades(runs, query, documents)
    merged_runs = replace(
        runs,
        offsets=offsets,
        documents=documents,
        ranks=ranks,
        scores=scores,
        grades=grades,
        judged=judged,
        rerank=runs.rerank[:, chosen],
        rerank_ranks=runs.rerank_ranks[:, chosen],
        chunks=runs.documents[chosen],
        origin=lists,
        ties="trec",
    )
    return merged_runs.restrict(runs.sources, ties=runs.ties)


def _group_keys(runs: AlignedRuns, parents: IntArray) -> IntArray:
    """(N,): a number for each query and parent, in the order of the ``trec`` rule."""
    size = len(runs.vocabulary)
    return runs.query_index * (size + 1) + (size - parents)


def _group_chunks(owner: IntArray, ranks: IntArray) -> tuple[IntArray, IntArray]:
    """The rows of a list by parent, best first, and where each parent begins among them."""
    rows = np.flatnonzero(ranks)
    rows = rows[np.lexsort((ranks[rows], owner[rows]))]
    return rows, np.flatnonzero(np.diff(owner[rows], prepend=-1))


def _negative_error(runs: AlignedRuns, source: int, row: int) -> AlignmentError:
    return AlignmentError(
        f"list {runs.sources[source]!r} gives chunk {runs.vocabulary[int(runs.documents[row])]!r} "
        f"of query {runs.queries[int(runs.query_index[row])]!r} the score "
        f"{runs.scores[source, row]:g}, and score: sum needs scores from 0 up: write score: max"
    )


def _find_grades(
    runs: AlignedRuns, query: IntArray, documents: IntArray
) -> tuple[IntArray, BoolArray]:
    """The grade of each document, 0 where it is unjudged, and whether it is judged; (G,) each."""
    grades, judged = np.zeros(len(query), dtype=np.int64), np.full(len(query), runs.complete)
    qrels = runs.qrels
    if qrels is None or not len(qrels.grades):
        return grades, judged
    vocabulary, (known, codes) = unite_vocabularies([runs.vocabulary, qrels.vocabulary])
    index = {name: row for row, name in enumerate(qrels.queries)}
    judged_query = np.array([index.get(name, -1) for name in runs.queries], dtype=np.int64)
    keys = query_of_rows(qrels.offsets) * len(vocabulary) + codes[qrels.documents]
    at = find_keys(keys, judged_query[query] * len(vocabulary) + known[documents])
    grades[at >= 0], judged[at >= 0] = qrels.grades[at[at >= 0]], True
    return grades, judged
