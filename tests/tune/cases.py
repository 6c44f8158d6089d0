"""Small aligned collections for the tests of tuning."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.alignment import align
from fusion_bench.data.ordering import FloatArray
from fusion_bench.data.qrels import Qrels
from fusion_bench.data.records import Query
from fusion_bench.data.run import Run
from fusion_bench.io.looks import LedgerEntry


def aligned(
    queries: int = 24,
    *,
    depth: int = 8,
    groups: Sequence[str] | None = None,
    types: Sequence[str | None] | None = None,
    seed: int = 0,
) -> AlignedRuns:
    rng = np.random.default_rng(seed)
    names = [f"q{q:03d}" for q in range(queries)]
    rows = [(name, f"d{d:02d}") for name in names for d in range(depth)]
    hidden = rng.normal(size=len(rows))

    def noisy(noise: float) -> FloatArray:
        return np.asarray(hidden + noise * rng.normal(size=len(rows)))

    asked, documents = [q for q, _ in rows], [d for _, d in rows]
    grades = np.zeros(len(rows), dtype=np.int64)
    grades[hidden.reshape(queries, depth).argmax(axis=1) + depth * np.arange(queries)] = 1
    asked_by = frozenset({"semantic", "question"})
    return align(
        Qrels.from_rows(asked, documents, grades),
        [
            Run.from_rows("good", asked, documents, noisy(0.5), roles=asked_by),
            Run.from_rows("bad", asked, documents, noisy(3.0), roles=frozenset({"keyword"})),
        ],
        rerankers=[Run.from_rows("sharp", asked, documents, noisy(0.2))],
        spaces={"sharp": "unbounded"},
        queries={
            name: Query(
                name,
                type=None if types is None else types[q],
                group=None if groups is None else groups[q],
            )
            for q, name in enumerate(names)
        },
    )


def make_look(*queries: str, **changed: Any) -> LedgerEntry:  # noqa: ANN401 - any field's
    fields = {"experiment": "e", "system": "s", "measure": "nDCG@10", "date": "2026-01-01"}
    numbers = {"numbers": "0", "number": 1, "level": 0.02}
    return LedgerEntry.model_validate({**fields, **numbers, "queries": queries, **changed})
