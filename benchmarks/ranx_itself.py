"""The real ``ranx.optimize_fusion``, run as its documentation has it, and timed.

By wsum on min-max scores (its default) and by rrf, each over its own grid; the better of both on
the queries that it was given. What it chooses is then evaluated on our engine, where its values
and ours are equal.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.collections import Collection
from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.records import Qrels
from fusion_bench.tune.validation.splits import BoolArray

if TYPE_CHECKING:
    import ranx

__all__ = ["Found", "forget", "optimized", "record", "recorded", "rows_of", "warm_up"]

#: What it chose the last time: it depends on nothing of ours, and takes minutes.
KEPT = Path(__file__).parent / "ranx.json"


@dataclass(frozen=True)
class Found:
    """What it chose, and what that took, without reading and converting.

    Attributes:
        name: As ``rivals`` names the variant of its grid.
        wall: Seconds.
        cpu: Seconds of all its threads.
    """

    name: str
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
    _, name = max(best, key=lambda one: one[0])
    return Found(name, *spent)


def recorded(name: str) -> list[Found]:
    """What it chose on the first splits of a collection; empty where it was not run."""
    return [Found(**one) for one in _kept().get(name, [])]


def record(name: str, found: Sequence[Found]) -> None:
    """Keep that."""
    _write(_kept() | {name: [asdict(one) for one in found]})


def forget(part: str) -> None:
    """Run it again where the collection's name contains this."""
    _write({name: found for name, found in _kept().items() if part not in name})


def _kept() -> dict[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = {}
    if KEPT.exists():
        found = json.loads(KEPT.read_text(encoding="utf-8"))
    return found


def _write(kept: Mapping[str, list[dict[str, Any]]]) -> None:
    KEPT.write_text(f"{json.dumps(kept, indent=1)}\n", encoding="utf-8")


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
