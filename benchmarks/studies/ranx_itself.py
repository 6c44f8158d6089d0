"""The real ``ranx.optimize_fusion``, called as in its documentation, and timed.

wsum on min-max scores (its default) and rrf run over their grids; the better of both on the tuning
queries is the choice. fusion_bench then evaluates it: both give equal values.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.collections import Collection
from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.ordering import BoolArray

if TYPE_CHECKING:
    import ranx

#: Its choices, as a run takes minutes: delete an entry to run it again.
CHOICES = Path(__file__).parent / "ranx.json"
#: Fusion method and normalizer. The last compiles fastest.
METHODS = (("wsum", "min-max"), ("rrf", None))


@dataclass(frozen=True)
class RanxChoice:
    """A choice and its cost, without reading and converting.

    Attributes:
        name: Of the variant in ``benchmarks.studies.rivals``.
        wall: Seconds.
        cpu: Seconds of all its threads.
    """

    name: str
    wall: float
    cpu: float


def run_ranx(
    collection: Collection,
    tune: BoolArray,
    methods: Sequence[tuple[str, str | None]] = METHODS,
) -> RanxChoice:
    """Tune with the rerank list as one more list.

    Args:
        collection: Lists and judgments.
        tune: Shape (Q,): the tuning queries.
        methods: Methods and normalizers to try.
    """
    from ranx import evaluate, fuse, optimize_fusion

    qrels, lists = _convert(collection, tune)
    wall, cpu = time.perf_counter(), time.process_time()
    best: list[tuple[float, str]] = []
    for method, norm in methods:
        how = {"norm": norm, "method": method}
        params = optimize_fusion(qrels, lists, metric="ndcg@10", show_progress=False, **how)
        fused = fuse(lists, params=params, **how)
        best.append((float(evaluate(qrels, fused, "ndcg@10")), _name_variant(collection, params)))
    seconds = time.perf_counter() - wall, time.process_time() - cpu
    _, name = max(best, key=lambda pair: pair[0])
    return RanxChoice(name, *seconds)


def read_choices(name: str) -> list[RanxChoice]:
    """The choices on the first splits of a collection; empty where it has not run."""
    return [RanxChoice(**choice) for choice in _read_all().get(name, [])]


def write_choices(name: str, choices: Sequence[RanxChoice]) -> None:
    """Keep the choices on a collection."""
    every = _read_all() | {name: [asdict(choice) for choice in choices]}
    CHOICES.write_text(f"{json.dumps(every, indent=1)}\n", encoding="utf-8")


def _read_all() -> dict[str, list[dict[str, Any]]]:
    every: dict[str, list[dict[str, Any]]] = {}
    if CHOICES.exists():
        every = json.loads(CHOICES.read_text(encoding="utf-8"))
    return every


def compile_ranx(collection: Collection) -> None:
    """Run on two queries: numba compiles once a process."""
    few = np.zeros(len(collection.runs.queries), dtype=bool)
    few[:2] = True
    run_ranx(collection, few)


def _name_variant(collection: Collection, params: dict[str, object]) -> str:
    if "k" in params:
        return f"rrf k {params['k']}"
    weights = np.asarray(params["weights"], dtype=np.float64).tolist()
    return str(dict(zip(collection.all_lists.sources, weights, strict=True)))


def _convert(collection: Collection, tune: BoolArray) -> tuple[ranx.Qrels, list[ranx.Run]]:
    """Judgments and lists of the tuning queries as objects of ranx."""
    from ranx import Qrels, Run

    runs = collection.all_lists.subset(tune)
    tuned = set(runs.queries)
    judgments = {q: row for q, row in collection.qrels.to_dict().items() if q in tuned}
    scores = [dict(_read_scores(runs, s)) for s in range(len(runs.sources))]
    lists = [Run.from_dict(r, name=n) for r, n in zip(scores, runs.sources, strict=True)]
    return Qrels.from_dict(judgments), lists


def _read_scores(runs: AlignedRuns, s: int) -> Iterator[tuple[str, dict[str, float]]]:
    for query, rows in query_slices(runs.queries, runs.offsets):
        ranked = np.flatnonzero(runs.ranks[s, rows]) + rows.start
        yield query, {runs.vocabulary[runs.documents[i]]: float(runs.scores[s, i]) for i in ranked}


def query_slices(names: tuple[str, ...], offsets: np.ndarray) -> Iterator[tuple[str, slice]]:
    """Each query with its rows."""
    for i, name in enumerate(names):
        yield name, slice(int(offsets[i]), int(offsets[i + 1]))
