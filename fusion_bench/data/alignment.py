"""Put runs, rerank lists and judgements on one set of candidates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from fusion_bench.data.aligned_runs import AlignedRuns, Ties
from fusion_bench.data.candidate_union import (
    codes_in,
    find_candidates,
    ideal_gains,
    place_candidates,
    scatter_grades,
    scatter_runs,
)
from fusion_bench.data.ids import unite_vocabularies
from fusion_bench.data.records import Qrels, Query, Run
from fusion_bench.errors import AlignmentError


def align(
    qrels: Qrels,
    runs: Sequence[Run],
    *,
    rerankers: Sequence[Run] = (),
    queries: Mapping[str, Query] | None = None,
    ties: Ties = "trec",
    complete: bool = False,
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

    Raises:
        AlignmentError: No run, two of one name, or a run or rerank list that shares no query with
            the judgements.
    """
    _check_lists(qrels, runs, rerankers)
    vocabulary, (judged_codes, *codes) = unite_vocabularies(
        [qrels.vocabulary, *(run.vocabulary for run in runs)]
    )
    bits = len(vocabulary).bit_length()
    # They are sorted by query, then by document from the greatest id down: the trec rule.
    candidates, offsets, placements = place_candidates(qrels.queries, runs, codes, bits)
    ranks, scores = scatter_runs(len(candidates), runs, placements)
    placements = [
        find_candidates(candidates, run, codes_in(vocabulary, run.vocabulary), qrels.queries, bits)
        for run in rerankers
    ]
    rerank_ranks, rerank = scatter_runs(len(candidates), rerankers, placements)
    placement = find_candidates(candidates, qrels, judged_codes, qrels.queries, bits)
    judged, grades = scatter_grades(len(candidates), qrels, placement)
    ideal_offsets, ideal_grades = ideal_gains(qrels)
    aligned = AlignedRuns(
        sources=tuple(run.name for run in runs),
        roles=tuple(run.roles for run in runs),
        queries=qrels.queries,
        **query_fields(qrels, queries or {}),
        offsets=offsets,
        vocabulary=vocabulary,
        documents=~candidates & ((1 << bits) - 1),
        ranks=ranks,
        scores=scores,
        grades=grades,
        judged=judged | complete,
        rerankers=tuple(run.name for run in rerankers),
        rerank=rerank,
        rerank_ranks=rerank_ranks,
        ideal_offsets=ideal_offsets,
        ideal_grades=ideal_grades,
        ties=ties,
    )
    return aligned.restrict(aligned.sources) if ties == "first_seen" else aligned


def query_fields(qrels: Qrels, queries: Mapping[str, Query]) -> dict[str, Any]:
    """The fields of aligned runs that say what is known of each judged query."""
    known = [queries.get(query) for query in qrels.queries]
    return {
        "types": tuple(query and query.type for query in known),
        "confidences": tuple(query and query.confidence for query in known),
        "groups": tuple(
            (query and query.group) or name
            for name, query in zip(qrels.queries, known, strict=True)
        ),
    }


def _check_lists(qrels: Qrels, runs: Sequence[Run], rerankers: Sequence[Run]) -> None:
    if not runs:
        raise AlignmentError("no run to align: at least one is needed")
    for kind, lists in (("run", runs), ("rerank list", rerankers)):
        names = [run.name for run in lists]
        for name in names:
            if names.count(name) > 1:
                raise AlignmentError(f"two {kind}s are named {name!r}: give each its own name")
        for run in lists:
            _check_common_query(kind, run, qrels)


def _check_common_query(kind: str, run: Run, qrels: Qrels) -> None:
    answered = [run.queries[q] for q in np.flatnonzero(np.diff(run.offsets)).tolist()]
    if not set(answered) & set(qrels.queries):
        example = repr(answered[0]) if answered else "nothing, every row being dropped,"
        raise AlignmentError(
            f"{kind} {run.name!r} and the qrels have no query in common "
            f"(for example {example} in the {kind}, {qrels.queries[0]!r} in the qrels): "
            "check that both use the same query ids"
        )
