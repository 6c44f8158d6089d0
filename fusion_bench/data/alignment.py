"""Put runs, rerank lists and judgements on one set of candidates.

A candidate is an integer, its key: the query above, the document's common code below, from the
greatest id down, so that sorted keys stand in the order of the ``trec`` rule.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from fusion_bench.data.aligned_runs import AlignedRuns, Ties
from fusion_bench.data.grouped_rows import query_of_rows, to_offsets, unite_vocabularies
from fusion_bench.data.ordering import FloatArray, IntArray
from fusion_bench.data.qrels import Qrels
from fusion_bench.data.records import Query, ScoreSpace, Switch
from fusion_bench.data.run import Run
from fusion_bench.errors import AlignmentError

#: The first places of a list, whose documents are compared with the judgments.
TOP: Final = 10


def align(
    qrels: Qrels,
    runs: Sequence[Run],
    *,
    rerankers: Sequence[Run] = (),
    queries: Mapping[str, Query] | None = None,
    ties: Ties = "trec",
    complete: bool = False,
    spaces: Mapping[str, ScoreSpace] | None = None,
) -> AlignedRuns:
    """Put runs, rerank lists and judgements on one set of candidates.

    Every judged query is kept, returned or not; queries that are not judged are left out.

    Args:
        qrels: The judgements.
        runs: The sources; at least one.
        rerankers: Rerank lists; what they score beyond the candidates is left out.
        queries: Types and groups, by query id.
        ties: The tie rule.
        complete: The judgements are complete: a document that is not listed is judged 0.
        spaces: What the scores of each rerank list mean, by its name.

    Raises:
        AlignmentError: No run, two of one name, or a run or rerank list that shares no query with
            the judgements.
    """
    _check_lists(qrels, runs, rerankers)
    tables: list[Run | Qrels] = [*runs, *rerankers, qrels]
    vocabulary, codes = unite_vocabularies([table.vocabulary for table in tables])
    bits = len(vocabulary).bit_length()
    keys = [
        _row_keys(table, code, qrels.queries, bits)
        for table, code in zip(tables, codes, strict=True)
    ]
    common, top = _count_common_documents(tables, codes, keys, len(vocabulary))
    del codes  # the arrays below are large enough
    candidates = np.sort(np.concatenate(keys[: len(runs)]))
    candidates = candidates[(candidates >= 0) & (np.diff(candidates, prepend=-1) > 0)]
    ranks, scores = _scatter_runs(candidates, runs, keys[: len(runs)])
    rerank_ranks, rerank = _scatter_runs(candidates, rerankers, keys[len(runs) : -1])
    at, rows = _find_rows(candidates, keys[-1])
    judged, grades = np.full(len(candidates), complete), np.zeros(len(candidates), dtype=np.int64)
    judged[at], grades[at] = True, qrels.grades[rows]
    ideal_offsets, ideal_grades = _ideal_gains(qrels)
    aligned = AlignedRuns(
        sources=tuple(run.name for run in runs),
        roles=tuple(run.roles for run in runs),
        switches=source_switches(runs),
        queries=qrels.queries,
        **query_fields(qrels, queries or {}),
        offsets=to_offsets(np.bincount(candidates >> bits, minlength=len(qrels.queries))),
        vocabulary=vocabulary,
        documents=~candidates & ((1 << bits) - 1),
        ranks=ranks,
        scores=scores,
        grades=grades,
        judged=judged,
        rerankers=tuple(run.name for run in rerankers),
        rerank=rerank,
        rerank_ranks=rerank_ranks,
        ideal_offsets=ideal_offsets,
        ideal_grades=ideal_grades,
        ties=ties,
        common_documents=common,
        top_documents=top,
        spaces=dict(spaces or {}),
        qrels=qrels,
        complete=complete,
    )
    return aligned.restrict(aligned.sources) if ties == "first_seen" else aligned


def query_fields(qrels: Qrels, queries: Mapping[str, Query]) -> dict[str, Any]:
    """The fields of aligned runs that say what is known of each judged query."""
    known = [queries.get(query) or Query(query) for query in qrels.queries]
    return {
        "types": tuple(query.type for query in known),
        "confidences": tuple(query.confidence for query in known),
        "groups": tuple(query.group or query.id for query in known),
        "records": tuple(known),
    }


def source_switches(runs: Sequence[Run]) -> tuple[Switch | None, ...]:
    """The switch of each source; empty where no run has one."""
    switches = tuple(run.switch for run in runs)
    return switches if any(switch is not None for switch in switches) else ()


def _row_keys(table: Run | Qrels, codes: IntArray, queries: tuple[str, ...], bits: int) -> IntArray:
    """The key of each row; negative for a query that is not judged.

    Args:
        table: With N rows.
        codes: Shape (vocabulary of the table,): the common code of its documents.
        queries: The judged queries.
        bits: What a common code fits into.
    """
    index = {query: q for q, query in enumerate(queries)}
    query = np.array([index.get(q, -1) for q in table.queries], dtype=np.int64)
    # A negative number has all its upper bits set: ~code is a query's worth minus the code.
    keys = np.repeat((query + 1) << bits, np.diff(table.offsets))
    keys += ~codes[table.documents]
    return keys


def _count_common_documents(
    tables: Sequence[Run | Qrels], codes: Sequence[IntArray], keys: Sequence[IntArray], size: int
) -> tuple[IntArray, IntArray]:
    """Count documents that tables share, and judged ones in first tens: see ``AlignedRuns``.

    Args:
        tables: The lists, and the judgments last.
        codes: The common code of each document of each table.
        keys: The keys of their rows.
        size: Number of common codes.
    """
    members = np.zeros((len(tables), size), dtype=bool)
    top = np.zeros((len(tables) - 1, 2), dtype=np.int64)
    for t in reversed(range(len(tables))):  # the judgments first
        table, is_asked = tables[t], keys[t] >= 0
        members[t, codes[t][table.documents[is_asked]]] = True
        if isinstance(table, Run):
            first = codes[t][table.documents[is_asked & (table.ranks <= TOP)]]
            top[t] = len(first), np.count_nonzero(members[-1, first])
    common = np.zeros((len(tables), len(tables)), dtype=np.int64)
    for t, row in enumerate(members):
        common[t, : t + 1] = common[: t + 1, t] = [
            np.count_nonzero(row & other) for other in members[: t + 1]
        ]
    return common, top


def _find_rows(candidates: IntArray, keys: IntArray) -> tuple[IntArray, IntArray]:
    """Where rows stand among the sorted candidates, and which rows these are."""
    at = np.searchsorted(candidates, keys)
    at[at == len(candidates)] = 0
    rows = np.flatnonzero(candidates[at] == keys) if len(candidates) else at[:0]
    return at[rows], rows


def _scatter_runs(
    candidates: IntArray, runs: Sequence[Run], keys: Sequence[IntArray]
) -> tuple[IntArray, FloatArray]:
    """(S, N) ranks and scores of each run at the candidates; 0 and NaN where it has none."""
    ranks = np.zeros((len(runs), len(candidates)), dtype=np.int64)
    scores = np.full((len(runs), len(candidates)), np.nan)
    for s, (run, key) in enumerate(zip(runs, keys, strict=True)):
        at, rows = _find_rows(candidates, key)
        ranks[s, at], scores[s, at] = run.ranks[rows], run.scores[rows]
    return ranks, scores


def _ideal_gains(qrels: Qrels) -> tuple[IntArray, IntArray]:
    """Positive grades of every query, greatest first, with their offsets."""
    query = query_of_rows(qrels.offsets)
    positive = np.flatnonzero(qrels.grades > 0)
    order = positive[np.lexsort((-qrels.grades[positive], query[positive]))]
    counts = np.bincount(query[positive], minlength=len(qrels.queries))
    return to_offsets(counts), qrels.grades[order]


def _check_lists(qrels: Qrels, runs: Sequence[Run], rerankers: Sequence[Run]) -> None:
    if not runs:
        raise AlignmentError("no run to align: at least one is needed")
    for kind, lists in (("run", runs), ("rerank list", rerankers)):
        names = [run.name for run in lists]
        for name in names:
            if names.count(name) > 1:
                raise AlignmentError(f"two {kind}s are named {name!r}: give each its own name")
        for run in lists:
            answered = [run.queries[q] for q in np.flatnonzero(np.diff(run.offsets)).tolist()]
            if run.switch is not None:  # it may be off for all of them
                answered = list(run.queries)
            if not set(answered) & set(qrels.queries):
                example = repr(answered[0]) if answered else "nothing, every row being dropped,"
                raise AlignmentError(
                    f"{kind} {run.name!r} and the qrels have no query in common "
                    f"(for example {example} in the {kind}, {qrels.queries[0]!r} in the qrels): "
                    "check that both use the same query ids"
                )
            _check_bare_lists(run, [qrels, *(r for r in (*runs, *rerankers) if r is not run)])


def _check_bare_lists(run: Run, others: Sequence[Run | Qrels]) -> None:
    """Refuse an object of numbers, such as ``{"code": 429}``, without a document that is known."""
    if not run.bare:
        return
    known = {name for t in others for name in t.vocabulary.decode(np.unique(t.documents))}
    for query in set(run.queries) & set(run.bare):
        if not known & set(run.to_dict()[query]):
            raise AlignmentError(
                f"{run.bare[query]}: no key of this object is a document that the judgments or "
                "another list name, so it may be no ranking: if it is one, write 'format: json' "
                'beside the path in dataset.yaml, or {"hits": [{"id": …, "score": …}]}'
            )
