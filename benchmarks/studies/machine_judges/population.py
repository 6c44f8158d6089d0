"""Per-query values of four systems under people's grades, and under those of simulated machines."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.collections import load_parity_run
from benchmarks.studies.machine_judges.confusion import SCALES, confusion, confusions_by_topic
from fusion_bench.data.ordering import FloatArray, IntArray
from fusion_bench.io.load_records import load_qrels

#: The lists of each collection; the last is the one that a biased judge favors.
SYSTEMS: Mapping[str, tuple[str, ...]] = {
    "codec": ("bm25", "bm25-rm3", "ance", "entity-feedback"),
    "trec-dl-2019": ("bm25", "tas-b", "ada2", "splade"),
}
CUT, FAVORED = 10, 5
DISCOUNTS = 1 / np.log2(np.arange(2, CUT + 2))

#: Generator, people's grades (J,), favored documents → the machine's grades (gradings, J).
Judge = Callable[[np.random.Generator, IntArray, IntArray], IntArray]


@dataclass(frozen=True, eq=False)
class Population:
    """The queries that simulations draw from.

    Attributes:
        systems: S names.
        people: (S, Q): nDCG@10 under people's grades.
        machines: Judge → (S, Q, K): the same under K independent gradings of each query.
    """

    systems: tuple[str, ...]
    people: FloatArray
    machines: dict[str, FloatArray]


def make_population(collection: str, *, gradings: int, seed: int) -> Population:
    """Grade every judged document of a collection by each machine, several times."""
    rng = np.random.default_rng(seed)
    folder, names = Path(os.environ["FUSION_BENCH_PARITY_DATA"]), SYSTEMS[collection]
    qrels = load_qrels(folder / collection / "qrels.txt")
    runs = {name: load_parity_run(collection, "runs", name).to_dict() for name in names}
    lists = {name: top_documents(run) for name, run in runs.items()}
    judges = make_judges(SCALES[collection], gradings)
    people = np.zeros((len(names), len(qrels)))
    machines = {name: np.zeros((len(names), len(qrels), gradings)) for name in judges}
    for q, (query, judged) in enumerate(qrels.to_dict().items()):
        at = {document: i for i, document in enumerate(judged)}
        grades = np.maximum(np.array(list(judged.values())), 0)
        ranked = [rank_codes(lists[name].get(query, []), at) for name in names]
        favored = ranked[-1][:FAVORED]
        favored = favored[favored < len(at)]
        people[:, q] = [ndcg(grades[None], codes)[0] for codes in ranked]
        for name, judge in judges.items():
            given = judge(rng, grades, favored)
            machines[name][:, q] = [ndcg(given, codes) for codes in ranked]
    return Population(names, people, machines)


def make_judges(scale: Mapping[int, int], gradings: int) -> dict[str, Judge]:
    """The simulated machines, by name."""
    highest = max(scale.values())
    by_topic = confusions_by_topic("qwen", scale)

    def draw(rng: np.random.Generator, table: FloatArray, grades: IntArray) -> IntArray:
        bounds = np.cumsum(table, axis=-1)[..., grades, :-1]
        return np.asarray((rng.random((gradings, len(grades), 1)) > bounds).sum(axis=-1))

    def real(name: str) -> Judge:
        table = confusion(name, scale)
        return lambda rng, grades, _: draw(rng, table, grades)

    qwen = real("qwen")

    def topical(rng: np.random.Generator, grades: IntArray, _: IntArray) -> IntArray:
        return draw(rng, by_topic[rng.integers(len(by_topic), size=gradings)], grades)

    def generous(rng: np.random.Generator, grades: IntArray, favored: IntArray) -> IntArray:
        given = qwen(rng, grades, favored)
        return np.minimum(given + (rng.random(given.shape) < 0.5), highest)

    def favoring(rng: np.random.Generator, grades: IntArray, favored: IntArray) -> IntArray:
        given = qwen(rng, grades, favored)
        given[:, favored] = np.minimum(given[:, favored] + 1, highest)
        return given

    def inverted(rng: np.random.Generator, grades: IntArray, favored: IntArray) -> IntArray:
        return highest - qwen(rng, grades, favored)

    def blind(rng: np.random.Generator, grades: IntArray, _: IntArray) -> IntArray:
        return rng.integers(highest + 1, size=(gradings, len(grades)))

    return {
        "qwen": qwen,
        "ministral": real("ministral"),
        "qwen, a topic's confusion": topical,
        "generous": generous,
        "favors one system": favoring,
        "inverted": inverted,
        "blind": blind,
    }


def top_documents(run: Mapping[str, Mapping[str, float]]) -> dict[str, list[str]]:
    """The first documents of each query: by score, then by id descending."""
    return {
        query: sorted(scores, key=lambda d: (scores[d], d.encode()), reverse=True)[:CUT]
        for query, scores in run.items()
    }


def rank_codes(documents: list[str], at: Mapping[str, int]) -> IntArray:
    """The number of each document; one more than the last for an unjudged one."""
    return np.array([at.get(document, len(at)) for document in documents], dtype=np.int64)


def ndcg(grades: IntArray, ranked: IntArray) -> FloatArray:
    """(K,): nDCG@10 with linear gains, for each of K gradings (K, J) of the judged documents."""
    gains = np.concatenate([grades, np.zeros((len(grades), 1))], axis=1)
    ideal = -np.sort(-gains, axis=1)[:, :CUT]
    best = (ideal * DISCOUNTS[: ideal.shape[1]]).sum(axis=1)
    value = (gains[:, ranked] * DISCOUNTS[: len(ranked)]).sum(axis=1)
    return np.asarray(np.divide(value, best, out=np.zeros_like(best), where=best > 0))
