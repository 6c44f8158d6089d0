"""The checks, guards and golden queries of a policy, on every collection."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias

import numpy as np

from fusion_bench.config.models import Source
from fusion_bench.data.ordering import FloatArray, IntArray
from fusion_bench.errors import UnknownNameError
from fusion_bench.evaluation.ranking import SystemRanking, rank_queries
from fusion_bench.experiment.gate_settings import GatePolicy, Golden, Guard
from fusion_bench.experiment.system import System
from fusion_bench.gate.check_statistics import Check
from fusion_bench.gate.loaded_collections import LoadedCollection
from fusion_bench.gate.result import GoldenResult, GuardResult
from fusion_bench.stats.comparison import NOISE

Rankings: TypeAlias = Sequence[tuple[IntArray, SystemRanking]]
#: Collection → measure → (Q,) values.
ValuesByCollection: TypeAlias = dict[str, dict[str, FloatArray]]


def build_checks(
    policy: GatePolicy,
    collections: Sequence[LoadedCollection],
    before: ValuesByCollection,
    after: ValuesByCollection,
) -> Iterator[Check]:
    """Every check of a policy: measure × collection × slice.

    Args:
        policy: What is checked.
        collections: The loaded collections.
        before: The baseline's values.
        after: The candidate's values.
    """
    for loaded in collections:
        types = np.array([str(name) for name in loaded.task.runs.types], dtype=object)
        for name, tolerance in policy.checks.items():
            measure = loaded.measures[name].name
            for query_type in policy.slices_of(name):
                keep = np.full(len(types), True) if query_type is None else types == query_type
                yield Check(
                    collection=loaded.name,
                    slice=query_type,
                    measure=measure,
                    max_drop=tolerance.max_drop,
                    baseline=before[loaded.name][measure][keep],
                    candidate=after[loaded.name][measure][keep],
                    groups=loaded.task.groups[keep],
                )


def run_guards(
    policy: GatePolicy,
    collections: Sequence[LoadedCollection],
    before: ValuesByCollection,
    after: ValuesByCollection,
) -> Iterator[GuardResult]:
    """Every guard on every collection; arguments as for :func:`build_checks`."""
    for guard in policy.guards:
        for loaded in collections:
            measure = loaded.measures[guard.measure].name
            yield check_guard(
                guard, loaded.name, before[loaded.name][measure], after[loaded.name][measure]
            )


def check_golden_queries(
    policy: GatePolicy, source: Source, collections: Sequence[LoadedCollection], candidate: System
) -> Iterator[GoldenResult]:
    """Every golden query.

    Raises:
        UnknownNameError: It names a dataset that the experiment does not have.
    """
    if not policy.golden:
        return
    rankings_by_collection = {
        loaded.name: list(rank_queries(candidate, loaded.task.runs, loaded.task.dataset.spaces))
        for loaded in collections
    }
    for i, golden in enumerate(policy.golden):
        if golden.dataset is not None and golden.dataset not in rankings_by_collection:
            where = source.where(("gate", "golden", i, "dataset"))
            raise UnknownNameError("dataset", golden.dataset, rankings_by_collection, where=where)
        yield check_golden_query(golden, rankings_by_collection)


def check_guard(
    guard: Guard, collection: str, baseline: FloatArray, candidate: FloatArray
) -> GuardResult:
    """Count the queries that lose more than the guard allows.

    Args:
        guard: The bound.
        collection: The dataset.
        baseline: Shape (Q,).
        candidate: Shape (Q,).
    """
    if not len(baseline):
        error: str | None = "no query to guard"
    else:
        finite = np.isfinite(baseline) & np.isfinite(candidate)
        error = None if finite.all() else f"{int((~finite).sum())} values are not finite"
    violations = int((candidate - baseline < -guard.max_loss - NOISE).sum())
    share = violations / max(len(baseline), 1)
    return GuardResult(
        collection=collection,
        measure=guard.measure,
        max_loss=guard.max_loss,
        max_share=guard.max_share,
        violations=violations,
        share=share,
        error=error,
        holds=error is None and share <= guard.max_share,
    )


def check_golden_query(golden: Golden, rankings: Mapping[str, Rankings]) -> GoldenResult:
    """Check whether a golden query keeps its document in the top ranks.

    Args:
        golden: The query, the document and the last allowed rank.
        rankings: The candidate's rankings by collection.
    """
    names = [golden.dataset] if golden.dataset is not None else list(rankings)
    rank, error = None, None
    if len(names) > 1:
        error = f"several datasets ({', '.join(names)}): name the golden query's 'dataset'"
    else:
        rank = find_rank(rankings[names[0]], golden.query, golden.document)
        if rank is None:
            error = "no such query among the evaluated ones"
    return GoldenResult(
        collection=names[0] if len(names) == 1 else "",
        query=golden.query,
        document=golden.document,
        top=golden.top,
        rank=rank or None,
        error=error,
        holds=rank is not None and 1 <= rank <= golden.top,
    )


def find_rank(rankings: Rankings, query: str, document: str) -> int | None:
    """Rank of a document in the final list; 0 = not in it, None = no such query."""
    for _, ranking in rankings:
        runs = ranking.runs
        if query not in runs.queries:
            continue
        q = runs.queries.index(query)
        for row in range(int(runs.offsets[q]), int(runs.offsets[q + 1])):
            if runs.vocabulary[runs.documents[row]] == document:
                return int(ranking.positions[row])
        return 0
    return None
