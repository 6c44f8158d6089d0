"""What a policy asks of every collection: checks, guards and golden queries."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from fusion_bench.config.models import Source
from fusion_bench.data.ordering import FloatArray, IntArray
from fusion_bench.errors import UnknownNameError
from fusion_bench.evaluation.scores import Ranking, rankings
from fusion_bench.experiment.gate_settings import GatePolicy, Golden, Guard
from fusion_bench.experiment.system import System
from fusion_bench.gate.check_statistics import Check
from fusion_bench.gate.loaded_collections import LoadedCollection
from fusion_bench.gate.result import GoldenResult, GuardResult
from fusion_bench.stats.comparison import NOISE

__all__ = [
    "build_checks",
    "check_golden_queries",
    "check_golden_query",
    "check_guard",
    "find_rank",
    "run_guards",
]

Rankings = Sequence[tuple[IntArray, Ranking]]


def build_checks(
    policy: GatePolicy,
    arms: Sequence[LoadedCollection],
    before: Mapping[str, Mapping[str, FloatArray]],
    after: Mapping[str, Mapping[str, FloatArray]],
) -> Iterator[Check]:
    """Every check of a policy: measure × collection × slice.

    Args:
        policy: What is checked.
        arms: The collections.
        before: The baseline's values by collection and measure, each (Q,).
        after: The candidate's.
    """
    for arm in arms:
        types = np.array([str(name) for name in arm.task.runs.types], dtype=object)
        for name, tolerance in policy.checks.items():
            resolved = arm.measures[name].name
            for part in policy.slices_of(name):
                keep = np.full(len(types), True) if part is None else types == part
                yield Check(
                    collection=arm.name,
                    slice=part,
                    measure=resolved,
                    max_drop=tolerance.max_drop,
                    baseline=before[arm.name][resolved][keep],
                    candidate=after[arm.name][resolved][keep],
                    groups=arm.task.groups[keep],
                )


def run_guards(
    policy: GatePolicy,
    arms: Sequence[LoadedCollection],
    before: Mapping[str, Mapping[str, FloatArray]],
    after: Mapping[str, Mapping[str, FloatArray]],
) -> Iterator[GuardResult]:
    """Every guard on every collection; arguments as for :func:`contests`."""
    for guard in policy.guards:
        for arm in arms:
            name = arm.measures[guard.measure].name
            yield check_guard(guard, arm.name, before[arm.name][name], after[arm.name][name])


def check_golden_queries(
    policy: GatePolicy, source: Source, arms: Sequence[LoadedCollection], candidate: System
) -> Iterator[GoldenResult]:
    """Every golden query.

    Raises:
        UnknownNameError: It names a dataset that the experiment does not have.
    """
    if not policy.golden:
        return
    found = {
        arm.name: list(rankings(candidate, arm.task.runs, arm.task.dataset.spaces)) for arm in arms
    }
    for i, wanted in enumerate(policy.golden):
        if wanted.dataset is not None and wanted.dataset not in found:
            where = source.where(("gate", "golden", i, "dataset"))
            raise UnknownNameError("dataset", wanted.dataset, found, where=where)
        yield check_golden_query(wanted, found)


def check_guard(
    guard: Guard, collection: str, baseline: FloatArray, candidate: FloatArray
) -> GuardResult:
    """How many queries lose more than the guard allows.

    Args:
        guard: The bound.
        collection: The dataset.
        baseline: Shape (Q,).
        candidate: Shape (Q,).
    """
    if not len(baseline):
        fault: str | None = "no query to guard"
    else:
        finite = np.isfinite(baseline) & np.isfinite(candidate)
        fault = None if finite.all() else f"{int((~finite).sum())} values are not finite"
    losers = int((candidate - baseline < -guard.lose - NOISE).sum())
    share = losers / max(len(baseline), 1)
    return GuardResult(
        collection=collection,
        measure=guard.measure,
        lose=guard.lose,
        at_most=guard.at_most,
        violations=losers,
        share=share,
        error=fault,
        holds=fault is None and share <= guard.at_most,
    )


def check_golden_query(golden: Golden, found: Mapping[str, Rankings]) -> GoldenResult:
    """Whether a golden query keeps its document.

    Args:
        golden: The query, the document and the last place that will do.
        found: Rankings of the candidate by collection.
    """
    names = [golden.dataset] if golden.dataset is not None else list(found)
    places = [find_rank(found[name], golden.query, golden.document) for name in names]
    place = places[0] if len(names) == 1 else None
    fault = None
    if len(names) != 1:
        fault = f"several datasets ({', '.join(names)}): name the golden query's 'dataset'"
    elif place is None:
        fault = "no such query among the evaluated ones"
    return GoldenResult(
        collection=names[0] if len(names) == 1 else "",
        query=golden.query,
        document=golden.document,
        top=golden.top,
        rank=place or None,
        error=fault,
        holds=fault is None and place is not None and 1 <= place <= golden.top,
    )


def find_rank(rankings: Rankings, query: str, document: str) -> int | None:
    """Position of a document in the final list; 0 = not in it, None = no such query."""
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
