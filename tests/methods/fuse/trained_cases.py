"""Judged queries that trained fusions are tested on."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from random import Random
from typing import Any

import numpy as np

from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.alignment import align
from fusion_bench.data.qrels import Qrels
from fusion_bench.data.records import Query
from fusion_bench.data.run import Run
from fusion_bench.methods.fuse import Trainable, fusions

SOURCES = ("a", "b", "c")
TRAINED = [name for name, model in fusions.load_all().items() if issubclass(model, Trainable)]

#: Under which a method learns something from few queries.
OPTIONS: dict[str, dict[str, Any]] = {
    "prob_fuse": {"segments": 4},
    "slide_fuse": {"window": 1},
    "lambdamart": {"trees": 5, "least_leaf": 1},
}

Lists = dict[str, dict[str, float]]


def make_lists(
    seed: int, *, queries: int = 12, depth: int = 8, even: bool = False, documents: int = 15
) -> dict[str, Lists]:
    """Source → query → document → score, best first, without ties."""
    random = Random(seed)
    lists: dict[str, Lists] = {name: {} for name in SOURCES}
    for name in SOURCES:
        for q in range(queries):
            length = depth if even else random.randint(1, depth)
            ranked = random.sample(range(documents), length)
            lists[name][f"q{q:02}"] = {
                f"d{d}": round(90 - i - random.random() / 2, 3) for i, d in enumerate(ranked)
            }
    return lists


def make_judgments(
    seed: int, *, queries: int = 12, documents: int = 15
) -> dict[str, dict[str, int]]:
    """Query → document → grade 0, 1 or 2; half of the documents are not judged."""
    random = Random(seed)
    return {
        f"q{q:02}": {
            f"d{d}": random.randint(0, 2) for d in random.sample(range(documents), documents // 2)
        }
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
