"""Judged queries that trained fusions are tested on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from random import Random

import numpy as np

from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.alignment import align
from fusion_bench.data.qrels import Qrels
from fusion_bench.data.records import Query
from fusion_bench.data.run import Run
from fusion_bench.fuse import Trainable, fusions

SOURCES = ("a", "b", "c")
TRAINED = [name for name, model in fusions.load_all().items() if issubclass(model, Trainable)]

Lists = dict[str, dict[str, float]]


def make_lists(
    seed: int, *, queries: int = 12, depth: int = 8, even: bool = False
) -> dict[str, Lists]:
    """Source → query → document → score, without ties; even = every list has ``depth`` rows."""
    random = Random(seed)
    return {
        name: {
            f"q{q:02}": {
                f"d{d}": round(20 - i - random.random() / 2, 3)
                for i, d in enumerate(
                    random.sample(range(15), depth if even else random.randint(1, depth))
                )
            }
            for q in range(queries)
        }
        for name in SOURCES
    }


def make_judgments(seed: int, *, queries: int = 12) -> dict[str, dict[str, int]]:
    """Query → document → grade 0, 1 or 2; half of the documents are not judged."""
    random = Random(seed)
    return {
        f"q{q:02}": {f"d{d}": random.randint(0, 2) for d in random.sample(range(15), 8)}
        for q in range(queries)
    }


def make_runs(
    lists: Mapping[str, Lists],
    judgments: Mapping[str, Mapping[str, int]],
    *,
    groups: Mapping[str, str] | None = None,
    types: Mapping[str, str] | None = None,
    order: Sequence[str] | None = None,
    binary_relevance: int = 1,
) -> AlignedRuns:
    names = order or tuple(lists)
    known = {
        query: Query(query, type=(types or {}).get(query), group=(groups or {}).get(query))
        for query in judgments
    }
    runs = align(
        Qrels.from_dict({query: dict(grades) for query, grades in judgments.items()}),
        [Run.from_dict(name, lists[name]) for name in names],
        queries=known,
    )
    return replace(runs, binary_relevance=binary_relevance)


def scores_by_document(
    runs: AlignedRuns, scores: np.typing.NDArray[np.float64]
) -> dict[tuple[str, str], float]:
    return {
        (runs.queries[q], runs.vocabulary[d]): float(score)
        for q, d, score in zip(runs.query_index, runs.documents, scores, strict=True)
    }
