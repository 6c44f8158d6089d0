"""The grids of other tools, on the same lists.

Each tool chooses the best setting of its grid on the tuning queries. A tool that fuses two lists
gets every pair, and reranking of the fused list if it can rerank: more than the tool itself tries.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import combinations, product
from typing import Any

import numpy as np

from benchmarks.collections import MEASURE, Collection
from benchmarks.studies.ranx_itself import query_slices
from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.ordering import BoolArray, FloatArray
from fusion_bench.experiment.system import System
from fusion_bench.ranking.system_scores import evaluate_systems


@dataclass(frozen=True, eq=False)
class Rival:
    """A tool's grid.

    Attributes:
        name: The tool.
        variants: Every setting of its grid on a collection: a name and the values, (Q,).
        last: Of settings with equal means the last is chosen, not the first.
    """

    name: str
    variants: Callable[[Collection], Iterator[tuple[str, FloatArray]]]
    last: bool = False

    def choose(self, values: FloatArray, tune: BoolArray) -> int:
        """Index of the best of (V, Q) values on the tuning queries."""
        means = values[:, tune].mean(axis=1)
        if self.last:
            return int(len(means) - 1 - np.argmax(means[::-1]))
        return int(np.argmax(means))


def _list_weights(lists: int) -> list[tuple[float, ...]]:
    """Ranx's simplex, without the settings that its comparison of floats drops."""
    steps = [round(x, 1) for x in np.arange(0, 1.1, 0.1).tolist()]
    return [weights for weights in product(steps, repeat=lists) if sum(weights) == 1.0]


def _evaluate_ranx_grid(collection: Collection) -> Iterator[tuple[str, FloatArray]]:
    """``optimize_fusion`` by wsum on min-max scores (its default) and by rrf, over all lists."""
    runs = collection.all_lists
    weighted: dict[str, Any] = {"method": "weighted_score", "missing": "zero"}
    scaled = {"method": "min_max", "constant": 0}
    specs: list[dict[str, Any]] = [
        {**weighted, "normalize": scaled, "weights": dict(zip(runs.sources, w, strict=True))}
        for w in _list_weights(len(runs.sources))
    ]
    specs += [{"method": "rrf", "k": k} for k in range(10, 101, 10)]
    names = [str(spec.get("weights") or f"rrf k {spec['k']}") for spec in specs]
    for start in range(0, len(specs), 32):
        systems = [
            System.model_validate({"name": "s", "runs": runs.sources, "fusion": spec})
            for spec in specs[start : start + 32]
        ]
        evaluated = evaluate_systems(systems, runs, [MEASURE])
        for name, scores in zip(names[start : start + 32], evaluated, strict=True):
            yield name, scores.values[0]


def _pair_lists(collection: Collection) -> Iterator[tuple[str, AlignedRuns]]:
    for pair in combinations(collection.runs.sources, 2):
        yield " + ".join(pair), collection.runs.restrict(pair)


class PaddedTable:
    """A view as a table of queries × candidates, for thousands of variants a minute.

    Floats are compared without rounding, as the tools do.
    """

    def __init__(self, view: AlignedRuns) -> None:
        sizes = np.diff(view.offsets)
        place = np.arange(len(view.documents)) - np.repeat(view.offsets[:-1], sizes)
        self._shape = (len(sizes), int(sizes.max()))
        self._cells = (view.query_index, place)
        self.gains = self.fill_table(view.grades.astype(np.float64), 0.0)
        self._reranked = [self.fill_table(row, np.nan) for row in view.rerank]
        self.ideal = np.zeros(len(sizes))
        for q, (_, rows) in enumerate(query_slices(view.queries, view.ideal_offsets)):
            best = view.ideal_grades[rows][:10]
            self.ideal[q] = (best / np.log2(np.arange(len(best)) + 2)).sum()

    def evaluate(self, scores: FloatArray) -> Iterator[FloatArray]:
        """nDCG@10 of the fused list, and with each reranker over its first 50."""
        fused = self.fill_table(scores, -np.inf)
        top = top_columns(fused, 60)
        yield self._ndcg(top)
        for table in self._reranked:
            head = np.take_along_axis(table, top[:, :50], axis=1)
            order = np.argsort(np.where(np.isnan(head), np.inf, -head), axis=1, kind="stable")
            yield self._ndcg(np.take_along_axis(top, order, axis=1))

    def fill_table(self, values: FloatArray, fill: float) -> FloatArray:
        """(Q, P): values of the candidates, and what fills the rest."""
        out = np.full(self._shape, fill)
        out[self._cells] = values
        return out

    def _ndcg(self, order: np.ndarray) -> FloatArray:
        gains = np.take_along_axis(self.gains, order[:, :10], axis=1)
        dcg = (np.maximum(gains, 0) / np.log2(np.arange(gains.shape[1]) + 2)).sum(axis=1)
        judged = self.ideal > 0
        return np.asarray(np.divide(dcg, self.ideal, out=np.zeros_like(dcg), where=judged))


def top_columns(scores: FloatArray, count: int) -> np.ndarray:
    """(Q, count): columns by score, greatest first; equal ones by column."""
    count = min(count, scores.shape[1])
    best = np.sort(np.argpartition(-scores, count - 1, axis=1)[:, :count], axis=1)
    order = np.argsort(-np.take_along_axis(scores, best, axis=1), axis=1, kind="stable")
    return np.take_along_axis(best, order, axis=1)


def _with_reranker(
    table: PaddedTable, name: str, scores: FloatArray
) -> Iterator[tuple[str, FloatArray]]:
    for how, values in zip(("", ", reranked"), table.evaluate(scores), strict=False):
        yield name + how, values


def _evaluate_opensearch_grid(collection: Collection) -> Iterator[tuple[str, FloatArray]]:
    """The 82 variants of the Search Relevance Workbench's hybrid optimizer."""
    for pair, view in _pair_lists(collection):
        table = PaddedTable(view)
        for technique, means in (
            ("min_max", ("arithmetic", "geometric", "harmonic")),
            ("l2", ("arithmetic", "geometric", "harmonic")),
            ("z_score", ("arithmetic",)),
        ):
            scaled = np.array([opensearch_scale(technique, view, s) for s in range(2)])
            for mean, tenths in product(means, range(11)):
                weights = np.array([tenths / 10, 1 - tenths / 10])
                scores = opensearch_mean(mean, scaled, weights)
                name = f"{pair}, {technique}, {mean}, {tenths / 10}"
                yield from _with_reranker(table, name, scores)
        for k in (1, 5, 10, 20, 60):
            scores = rrf_scores(view, k)
            yield from _with_reranker(table, f"{pair}, rrf {k}", scores)


def rrf_scores(view: AlignedRuns, k: int) -> FloatArray:
    """(N,): plain RRF."""
    return np.asarray(np.where(view.ranks > 0, 1 / (k + view.ranks), 0.0).sum(axis=0))


def _per_query(view: AlignedRuns, s: int, scale: Callable[[FloatArray], FloatArray]) -> FloatArray:
    """(N,): a source's scores, scaled query by query; NaN where it has none."""
    out = np.full(len(view.documents), np.nan)
    for _, rows in query_slices(view.queries, view.offsets):
        ranked = np.flatnonzero(view.ranks[s, rows]) + rows.start
        if len(ranked):
            out[ranked] = scale(view.scores[s, ranked])
    return out


def opensearch_scale(technique: str, view: AlignedRuns, s: int) -> FloatArray:
    """As the normalization processor: a missing score becomes 0, a small one 0.001."""

    def scale(x: FloatArray) -> FloatArray:
        if technique == "l2":
            norm = np.sqrt((x**2).sum())
            return x / norm if norm else x
        if technique == "min_max":
            low, high = x.min(), x.max()
            if low == high:
                return np.ones_like(x)
            scaled = (x - low) / (high - low)
            return np.where(scaled == 0, 0.001, scaled)
        sd = x.std()
        scaled = (x - x.mean()) / sd if sd else x
        return np.where(scaled <= 0, 0.001, scaled)

    return np.nan_to_num(_per_query(view, s, scale), nan=0.0)


def opensearch_mean(mean: str, scaled: FloatArray, weights: FloatArray) -> FloatArray:
    """Weighted mean; the geometric and the harmonic one skip scores of 0."""
    if mean == "arithmetic":
        return np.asarray((weights[:, None] * scaled).sum(axis=0) / weights.sum())
    positive = scaled > 0
    safe = np.where(positive, scaled, 1.0)
    parts = np.where(positive, weights[:, None], 0.0)
    total = parts.sum(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        if mean == "geometric":
            mean_scores = np.exp((parts * np.log(safe)).sum(axis=0) / total)
        else:
            mean_scores = total / (parts / safe).sum(axis=0)
    return np.where(total > 0, mean_scores, 0.0)


def _evaluate_autorag_grid(collection: Collection) -> Iterator[tuple[str, FloatArray]]:
    """``hybrid_rrf`` with k from 4 to 80 and ``hybrid_cc`` with 101 weights of four scalings."""
    for pair, view in _pair_lists(collection):
        table = PaddedTable(view)
        for k in range(4, 81):
            yield from _with_reranker(table, f"{pair}, rrf {k}", rrf_scores(view, k))
        for technique in ("mm", "tmm", "z", "dbsf"):
            scaled = np.array([autorag_scale(technique, view, s) for s in range(2)])
            for percent in range(101):
                weight = percent / 100
                scores = weight * scaled[0] + (1 - weight) * scaled[1]
                yield from _with_reranker(table, f"{pair}, {technique} {weight}", scores)


def autorag_scale(technique: str, view: AlignedRuns, s: int) -> FloatArray:
    """As its normalizers: 0/0 and a missing score become 0."""
    floor = 0.0 if "bm25" in view.sources[s] else -1.0

    def scale(x: FloatArray) -> FloatArray:
        mean, sd = x.mean(), x.std()
        low, high = {
            "mm": (x.min(), x.max()),
            "tmm": (floor, x.max()),
            "z": (mean, mean + sd),
            "dbsf": (mean - 3 * sd, mean + 3 * sd),
        }[technique]
        return (x - low) / (high - low) if high != low else np.zeros_like(x)

    return np.nan_to_num(_per_query(view, s, scale), nan=0.0)


RANX = Rival("ranx's grid", _evaluate_ranx_grid, last=True)
RIVALS = (
    RANX,
    Rival("OpenSearch, 82 variants", _evaluate_opensearch_grid),
    Rival("AutoRAG", _evaluate_autorag_grid),
)
