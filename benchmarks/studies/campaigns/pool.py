"""Random settings of a collection: what each ranks in its first ten, computed once and stored."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

import numpy as np

from benchmarks.collections import load_collection
from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.grouped_rows import number_by_appearance
from fusion_bench.data.ordering import FloatArray, IntArray
from fusion_bench.experiment.system import System
from fusion_bench.ranking.final_lists import list_parts

Measure: TypeAlias = Literal["nDCG@10", "RR@10"]
DEPTH: Final = 10
DISCOUNTS: Final = 1 / np.log2(np.arange(DEPTH) + 2)
RECIPROCALS: Final = 1 / np.arange(1, DEPTH + 1)
SEED: Final = 31
SETTINGS: Final = 1_500
#: Share of the settings that blend in the reranker, where there is one.
BLENDED: Final = 0.3
FAMILIES: Final[Sequence[Mapping[str, Any]]] = (
    {"method": "rrf"},
    {"method": "weighted_score", "normalize": {"method": "min_max"}},
    {"method": "dbsf"},
)


@dataclass(frozen=True, eq=False)
class Pool:
    """The settings of a collection.

    Attributes:
        name: Of the collection.
        configs: T systems, as an experiment has them below ``systems``.
        points: Shape (T, D): the settings as points, near each other where they are alike.
        top: Shape (T, Q, 10): columns of ``grades``, best first; the last one beyond the list.
        grades: Shape (Q, C): of the documents that some setting ranks in its first ten; 0 beyond.
        contenders: Shape (Q,): how many documents that are.
        ideal: Shape (Q,): the ideal DCG@10.
        groups: Shape (Q,): codes.
    """

    name: str
    configs: tuple[dict[str, Any], ...]
    points: FloatArray
    top: np.ndarray
    grades: FloatArray
    contenders: IntArray
    ideal: FloatArray
    groups: IntArray

    @cached_property
    def cells(self) -> np.ndarray:
        """(T, Q·10): the places of ``top`` in the flat table of grades."""
        starts = np.arange(len(self.grades), dtype=np.int32) * self.grades.shape[1]
        return np.asarray((self.top + starts[:, None]).reshape(len(self.top), -1))

    def evaluate(self, measure: Measure, grades: FloatArray | None = None) -> FloatArray:
        """(T, Q): values of every setting, with these grades or those of the collection."""
        flat = (self.grades if grades is None else grades).astype(np.float32).ravel()
        values: FloatArray = np.empty(self.top.shape[:2], dtype=np.float32)
        for row, cells in zip(values, self.cells, strict=True):
            first = flat[cells].reshape(-1, DEPTH)
            row[:] = self.measure_lists(measure, first)
        return values

    def measure_lists(
        self, measure: Measure, first: FloatArray, *, queries: IntArray | None = None
    ) -> FloatArray:
        """(q,): the value of lists whose first ten documents have these grades, (q, 10).

        Args:
            measure: Which one.
            first: Grades.
            queries: Which queries these are; None = all.
        """
        if measure == "RR@10":
            return np.asarray(np.where(first > 0, RECIPROCALS, 0.0).max(axis=1), dtype=np.float64)
        gains = first @ DISCOUNTS.astype(first.dtype)
        ideal = self.ideal if queries is None else self.ideal[queries]
        return np.divide(gains, ideal, out=np.zeros(len(gains)), where=ideal > 0)

    def deal_grades(self, rng: np.random.Generator) -> FloatArray:
        """(Q, C): the grades of each query, permuted over its contenders: no setting is better."""
        keys = rng.random(self.grades.shape)
        keys[np.arange(self.grades.shape[1]) >= self.contenders[:, None]] = 2.0
        return np.take_along_axis(self.grades, keys.argsort(axis=1), axis=1)


def baseline_of(values: FloatArray, share: float = 0.1) -> int:
    """The setting at a share of all, by mean value."""
    order = values.mean(axis=1).argsort(kind="stable")
    return int(order[int(share * len(order))])


def draw_configs(
    sources: Sequence[str], rerankers: Sequence[str], count: int, seed: int = SEED
) -> tuple[tuple[dict[str, Any], ...], FloatArray]:
    """Random systems over all lists of a collection, and the same as points."""
    rng = np.random.default_rng(seed)
    configs, points = [], []
    for _ in range(count):
        family = int(rng.integers(len(FAMILIES)))
        weights = np.round(rng.dirichlet(np.full(len(sources), 0.8)), 3) + 0.001
        fusion: dict[str, Any] = {**FAMILIES[family]}
        fusion["weights"] = dict(zip(sources, weights.round(3).tolist(), strict=True))
        k = round(float(np.exp(rng.uniform(0, np.log(200)))), 2)
        beta = round(float(rng.uniform(0.05, 0.95)), 3) if rng.random() < BLENDED else 0.0
        if family == 0:
            fusion["k"] = k
        config: dict[str, Any] = {"runs": list(sources), "fusion": fusion}
        if beta and rerankers:
            config["blend"] = {"method": "linear", "reranker": rerankers[0], "beta": beta}
            config["blend"] |= {"retrieval": "fused_min_max", "missing": "below"}
        configs.append(config)
        kind = 0.5 * np.eye(len(FAMILIES))[family]
        points.append([*kind, np.log(k) / np.log(200) * (family == 0), *weights, beta])
    return tuple(configs), np.array(points)


def build_pool(name: str, settings: int = SETTINGS) -> Pool:
    """Rank a collection, or ``toy``, by random settings."""
    collection = load_collection(name)
    return rank_settings(name, replace(collection.runs, spaces=collection.spaces), settings)


def rank_settings(name: str, runs: AlignedRuns, settings: int, seed: int = SEED) -> Pool:
    """Rank aligned lists by random settings."""
    configs, points = draw_configs(runs.sources, runs.rerankers, settings, seed)
    tops = np.array([_rank_first(config, runs) for config in configs])
    columns, grades, contenders = _keep_contenders(tops, runs)
    groups = number_by_appearance(runs.groups)[0]
    return Pool(name, configs, points, columns, grades, contenders, _ideal_gains(runs), groups)


def _ideal_gains(runs: AlignedRuns) -> FloatArray:
    """(Q,): DCG@10 of the best order."""
    bounds = zip(runs.ideal_offsets[:-1], runs.ideal_offsets[1:], strict=True)
    best = [runs.ideal_grades[start:stop][:DEPTH] for start, stop in bounds]
    return np.array([grades @ DISCOUNTS[: len(grades)] for grades in best])


def _rank_first(config: Mapping[str, Any], runs: AlignedRuns) -> np.ndarray:
    """(Q, 10): candidates by row of the aligned table; −1 beyond the list."""
    system = System.model_validate({"name": "candidate", **config})
    first = np.full((len(runs.queries), DEPTH), -1, dtype=np.int32)
    for index, view, positions in list_parts(system, runs):
        rows = np.flatnonzero((positions > 0) & (positions <= DEPTH))
        if len(view.documents) != len(runs.documents):
            raise ValueError("a setting must rank all candidates")
        first[index[view.query_index[rows]], positions[rows] - 1] = rows
    return first


def _keep_contenders(
    tops: np.ndarray, runs: AlignedRuns
) -> tuple[np.ndarray, FloatArray, IntArray]:
    """Tops by columns of a table of contenders, their grades, and how many a query has."""
    is_first = np.zeros(len(runs.documents) + 1, dtype=bool)
    is_first[tops.ravel()] = True
    kept = np.flatnonzero(is_first[:-1])
    query = runs.query_index[kept]
    contenders = np.bincount(query, minlength=len(runs.queries))
    place = np.arange(len(kept)) - (np.cumsum(contenders) - contenders)[query]
    width = int(contenders.max()) + 1
    column = np.full(len(runs.documents) + 1, width - 1, dtype=np.int32)
    column[kept] = place
    grades = np.zeros((len(runs.queries), width))
    grades[query, place] = np.maximum(runs.grades[kept], 0)
    return column[tops], grades, contenders


ARRAYS: Final = ("points", "top", "grades", "contenders", "ideal", "groups")


def load_pool(name: str, folder: Path, settings: int = SETTINGS) -> Pool:
    """The pool of a collection; ranked once, then read from a folder."""
    path = folder / f"{name}-{settings}.npz"
    if path.exists():
        with np.load(path) as stored:
            configs = tuple(json.loads(str(stored["configs"])))
            return Pool(name, configs, **{key: stored[key] for key in ARRAYS})
    pool = build_pool(name, settings)
    folder.mkdir(parents=True, exist_ok=True)
    arrays = {key: getattr(pool, key) for key in ARRAYS}
    np.savez(path, configs=np.array(json.dumps(pool.configs)), **arrays)
    return pool
