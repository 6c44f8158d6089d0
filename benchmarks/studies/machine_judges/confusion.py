"""How often a machine gives each grade where the judge who stands in for people gives another.

The grades are those of TREC RAG 2025's development topics, 26,341 pairs on a scale of 0 to 4 that
three models judged. ``codex`` stands in for people.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import cache
from pathlib import Path

import numpy as np

from fusion_bench.data.ordering import FloatArray, IntArray
from fusion_bench.io.load_records import load_qrels

#: The judge who stands in for people.
PEOPLE = "codex"
#: The grades 0 to 4 of these judges on the scale of a collection. Grades from 2 count as relevant
#: to them, and so do the mapped ones: from 1 in codec, from 2 in trec-dl-2019.
SCALES: Mapping[str, Mapping[int, int]] = {
    "codec": {0: 0, 1: 0, 2: 1, 3: 2, 4: 2},
    "trec-dl-2019": {0: 0, 1: 1, 2: 2, 3: 3, 4: 3},
}
#: Weight of the mean over all topics in the confusion of one topic, in pairs of a grade.
PRIOR_PAIRS = 5


def load_grades(judge: str) -> dict[str, dict[str, int]]:
    """Topic → document → grade of one judge."""
    folder = Path(os.environ["FUSION_BENCH_PARITY_DATA"]) / "rag25-dev-judges"
    return _load_file(folder / f"{judge}.qrels.gz")


@cache
def _load_file(path: Path) -> dict[str, dict[str, int]]:
    return load_qrels(path).to_dict()


def count_pairs(judge: str, scale: Mapping[int, int], topic: str | None = None) -> IntArray:
    """Pairs by people's grade (rows) and the machine's (columns), both on a collection's scale.

    Args:
        judge: The machine.
        scale: One of :data:`SCALES`.
        topic: Of one topic; None = of all.
    """
    size = max(scale.values()) + 1
    counts = np.zeros((size, size), dtype=np.int64)
    machine = load_grades(judge)
    for name, documents in load_grades(PEOPLE).items():
        if topic in (None, name):
            for document, grade in documents.items():
                if document in machine.get(name, {}):
                    counts[scale[grade], scale[machine[name][document]]] += 1
    return counts


def confusion(judge: str, scale: Mapping[int, int]) -> FloatArray:
    """P(machine's grade | people's grade), one row a grade of people."""
    counts = count_pairs(judge, scale)
    return np.asarray(counts / counts.sum(axis=1, keepdims=True))


def confusions_by_topic(judge: str, scale: Mapping[int, int]) -> FloatArray:
    """The same for each topic, (topics, grades, grades), drawn towards the mean over all."""
    prior = PRIOR_PAIRS * confusion(judge, scale)
    counts = [count_pairs(judge, scale, topic) + prior for topic in load_grades(PEOPLE)]
    return np.stack([each / each.sum(axis=1, keepdims=True) for each in counts])
