"""Synthetic collections of the sizes that `make bench` measures, for fusion_bench and ranx."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.alignment import align
from fusion_bench.data.qrels import Qrels
from fusion_bench.data.run import Run


@dataclass(frozen=True)
class Size:
    """Queries, runs, documents a list, relevant documents a query, and the pool they come from."""

    name: str
    queries: int
    runs: int
    depth: int
    relevant: float
    pool: int


SIZES = {
    "many": Size("6,980 × 4 × 100", 6_980, 4, 100, 1.1, 400),
    "deep": Size("50 × 3 × 1,000", 50, 3, 1_000, 203, 4_000),
    "methods": Size("200 × 3 × 100", 200, 3, 100, 1.3, 400),
    "toy": Size("20 × 3 × 10", 20, 3, 10, 1.3, 40),
    "study": Size("40 × 4 × 10", 40, 4, 10, 3, 40),
    "huge": Size("100,000 × 4 × 100", 100_000, 4, 100, 1.1, 400),
}


@dataclass(frozen=True)
class Case:
    """One collection, as tables and aligned."""

    size: Size
    qrels: Qrels
    runs: tuple[Run, ...]
    aligned: AlignedRuns


def make_case(size: Size, seed: int = 0) -> Case:
    """Runs that agree in part: each ranks a noisy copy of one hidden score a document."""
    rng = np.random.default_rng(seed)
    hidden = rng.normal(size=(size.queries, size.pool)).astype(np.float32)
    names = np.array([f"q{q}" for q in range(size.queries)], dtype=object)
    documents = np.array([f"d{d}" for d in range(size.pool)], dtype=object)
    runs = []
    for s in range(size.runs):
        noise = rng.normal(size=hidden.shape).astype(np.float32)
        noisy = hidden + noise
        best = np.argpartition(-noisy, size.depth - 1, axis=1)[:, : size.depth]
        scores = np.take_along_axis(noisy, best, axis=1).astype(np.float64)
        runs.append(
            Run.from_rows(
                f"run{s}",
                np.repeat(names, size.depth).tolist(),
                documents[best.ravel()].tolist(),
                scores.ravel(),
            )
        )
    qrels = _make_qrels(size, hidden, names, documents, rng)
    return Case(size, qrels, tuple(runs), align(qrels, runs))


def _make_qrels(
    size: Size,
    hidden: np.ndarray,
    names: np.ndarray,
    documents: np.ndarray,
    rng: np.random.Generator,
) -> Qrels:
    """Documents of great hidden score are relevant; noise decides between near ones."""
    counts = np.maximum(1, rng.poisson(size.relevant - 1, size.queries) + 1)
    noisy = hidden + rng.normal(size=hidden.shape).astype(np.float32)
    order = np.argsort(-noisy, axis=1)
    queries = np.repeat(names, counts).tolist()
    relevant = [documents[d] for q, count in enumerate(counts) for d in order[q, :count]]
    grades = rng.integers(1, 4, len(relevant)).tolist()
    return Qrels.from_rows(queries, relevant, grades)
