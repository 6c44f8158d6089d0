"""The real ``ranx.optimize_fusion``, run as its documentation has it, and timed.

By wsum on min-max scores (its default) and by rrf, each over its own grid; the better of both on
the queries that it was given. What it chooses is then evaluated on our engine, where its values
and ours are equal.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.collections import Collection
from fusion_bench.align import AlignedRuns
from fusion_bench.records import Qrels
from fusion_bench.tune.splits import BoolArray

if TYPE_CHECKING:
    import ranx

__all__ = ["Found", "optimized", "rows_of", "warm_up"]


@dataclass(frozen=True)
class Found:
    """What it chose, and what that took, without reading and converting.

    Attributes:
        name: As ``rivals`` names the variant of its grid.
        value: Its own nDCG@10 of it on the tuning queries.
        wall: Seconds.
        cpu: Seconds of all its threads.
    """

    name: str
    value: float
    wall: float
    cpu: float


def optimized(collection: Collection, tune: BoolArray) -> Found:
    """Tune on these queries, with the rerank list as one more list.

    Args:
        collection: Where.
        tune: Shape (Q,): the queries that it is given.
    """
    from ranx import evaluate, fuse, optimize_fusion

    judged, lists = _given(collection, tune)
    wall, cpu = time.perf_counter(), time.process_time()
    best: list[tuple[float, str]] = []
    for method, norm in (("wsum", "min-max"), ("rrf", None)):
        asked = {"norm": norm, "method": method}
        found = optimize_fusion(judged, lists, metric="ndcg@10", show_progress=False, **asked)
        fused = fuse(lists, params=found, **asked)
        best.append((float(evaluate(judged, fused, "ndcg@10")), _named(collection, found)))
    spent = time.perf_counter() - wall, time.process_time() - cpu
    value, name = max(best, key=lambda one: one[0])
    return Found(name, value, *spent)


def warm_up(collection: Collection) -> None:
    """Have numba compile what it needs, on two queries: it does so once a process."""
    few = np.zeros(len(collection.runs.queries), dtype=bool)
    few[:2] = True
    optimized(collection, few)


def _named(collection: Collection, found: dict[str, object]) -> str:
    if "k" in found:
        return f"rrf k {found['k']}"
    weights = np.asarray(found["weights"], dtype=np.float64).tolist()
    return str(dict(zip(collection.all_lists.sources, weights, strict=True)))


def _given(collection: Collection, tune: BoolArray) -> tuple[ranx.Qrels, list[ranx.Run]]:
    """Judgements and lists of the tuning queries, as ranx has them."""
    from ranx import Qrels, Run

    runs = collection.all_lists.subset(tune)
    judged = dict(_judged(collection.qrels, set(runs.queries)))
    ranked = [dict(_ranked(runs, s)) for s in range(len(runs.sources))]
    lists = [Run.from_dict(r, name=n) for r, n in zip(ranked, runs.sources, strict=True)]
    return Qrels.from_dict(judged), lists


def _judged(qrels: Qrels, wanted: set[str]) -> Iterator[tuple[str, dict[str, int]]]:
    for query, rows in rows_of(qrels.queries, qrels.offsets):
        if query in wanted:
            pairs = zip(qrels.documents[rows], qrels.grades[rows], strict=True)
            yield query, {qrels.vocabulary[d]: int(grade) for d, grade in pairs}


def _ranked(runs: AlignedRuns, s: int) -> Iterator[tuple[str, dict[str, float]]]:
    for query, rows in rows_of(runs.queries, runs.offsets):
        there = np.flatnonzero(runs.ranks[s, rows]) + rows.start
        yield query, {runs.vocabulary[runs.documents[i]]: float(runs.scores[s, i]) for i in there}


def rows_of(names: tuple[str, ...], offsets: np.ndarray) -> Iterator[tuple[str, slice]]:
    """Each query with its rows."""
    for i, name in enumerate(names):
        yield name, slice(int(offsets[i]), int(offsets[i + 1]))
