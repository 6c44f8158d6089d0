"""The grid that all rules choose from: what each setting ranks in its first ten, stored once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Final

import numpy as np

from benchmarks.studies.rivals import (
    PaddedTable,
    autorag_scale,
    opensearch_mean,
    opensearch_scale,
    top_columns,
)
from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.ordering import BoolArray, FloatArray, IntArray

DEPTH: Final = 10
DISCOUNTS: Final = 1 / np.log2(np.arange(DEPTH) + 2)
#: The weight of the first list, in tenths; the other list has the rest.
TENTHS: Final = range(11)
#: RRF's k: ranx's grid, OpenSearch's, and Qdrant's (1, 2, 5, 20, 61 by positions from 0).
CONSTANTS: Final = (0, 1, 2, 4, 5, 10, 19, 20, 30, 40, 50, 60, 70, 80, 90, 100)
RRF: Final = "rrf"
#: AutoRAG's scalings, under a convex sum; ``mm`` is ranx's default for ``wsum`` too.
SCALINGS: Final = ("mm", "tmm", "z", "dbsf")
#: OpenSearch's normalizations with its means.
OPENSEARCH: Final = (
    *product(("min_max", "l2"), ("arithmetic", "geometric", "harmonic")),
    ("z_score", "arithmetic"),
)


@dataclass(frozen=True)
class Setting:
    """A point of the grid.

    Attributes:
        family: ``rrf``, a scaling under a convex sum, or OpenSearch's normalization and mean.
        tenths: Weight of the first list.
        k: RRF's constant; None elsewhere.
    """

    family: str
    tenths: int
    k: int | None = None


DEFAULT: Final = Setting(RRF, 5, 60)


def list_settings() -> tuple[Setting, ...]:
    """The grid, in the order of the tools' loops: weights ascending, then RRF's k ascending."""
    families = [*SCALINGS, *(" ".join(pair) for pair in OPENSEARCH)]
    weighted = [Setting(family, tenths) for family in families for tenths in TENTHS]
    return (*weighted, *(Setting(RRF, tenths, k) for tenths in TENTHS for k in CONSTANTS))


SETTINGS: Final = list_settings()


def find_settings(test: Callable[[Setting], bool]) -> tuple[int, ...]:
    """Places in the grid of the settings that pass a test."""
    return tuple(n for n, each in enumerate(SETTINGS) if test(each))


def _is_plain_rrf(each: Setting, *constants: int) -> bool:
    return each.family == RRF and each.tenths == 5 and each.k in constants


#: ``optimize_fusion`` by wsum, then by rrf.
RANX: Final = find_settings(
    lambda each: each.family == "mm" or _is_plain_rrf(each, *range(10, 101, 10))
)
#: The hybrid optimizer until 3.6, and from 3.7.
OPENSEARCH_66: Final = find_settings(lambda each: each.family.startswith(("min_max ", "l2 ")))
OPENSEARCH_82: Final = find_settings(
    lambda each: (
        each.family.startswith(("min_max ", "l2 ", "z_score "))
        or _is_plain_rrf(each, 1, 5, 10, 20, 60)
    )
)


@dataclass(frozen=True, eq=False)
class Grid:
    """The first ten of every setting, and what they are worth.

    Attributes:
        top: Shape (T, Q, 10): columns of the candidates.
        gains: Shape (Q, P): grades of a query's candidates, 0 beyond them.
        sizes: Shape (Q,): its number of candidates.
        ideal: Shape (Q,): its ideal DCG@10.
    """

    top: np.ndarray
    gains: FloatArray
    sizes: IntArray
    ideal: FloatArray

    @cached_property
    def pool(self) -> BoolArray:
        """(Q, P): the candidates."""
        return np.asarray(np.arange(self.gains.shape[1]) < self.sizes[:, None])

    @cached_property
    def contenders(self) -> BoolArray:
        """(Q, P): the candidates that some setting ranks in its first ten."""
        found = np.zeros(self.gains.shape, dtype=bool)
        for top in self.top:
            found[np.arange(len(found))[:, None], top] = True
        return found & self.pool

    @property
    def default(self) -> int:
        """The place of RRF with k = 60."""
        return SETTINGS.index(DEFAULT)

    def evaluate(self, gains: FloatArray) -> FloatArray:
        """NDCG@10 of every setting, (T, Q), where candidates have these gains, (Q, P)."""
        queries = np.arange(len(gains))[:, None]
        values = np.empty(self.top.shape[:2])
        for row, top in zip(values, self.top, strict=True):
            row[:] = gains[queries, top] @ DISCOUNTS
        judged = self.ideal > 0
        return np.asarray(np.divide(values, self.ideal, out=np.zeros_like(values), where=judged))


def build_grid(runs: AlignedRuns) -> Grid:
    """Rank by every setting; equal scores by candidate."""
    table = PaddedTable(runs)
    sizes = np.diff(runs.offsets)
    tops = [top_columns(table.fill_table(each, -np.inf), DEPTH) for each in _score_all(runs)]
    dtype = np.int16 if table.gains.shape[1] < 2**15 else np.int32
    return Grid(np.array(tops, dtype=dtype), np.maximum(table.gains, 0), sizes, table.ideal)


def _score_all(runs: AlignedRuns) -> Iterator[FloatArray]:
    """The fused scores of every setting, (N,), in their order."""
    scaled = {name: np.array([autorag_scale(name, runs, s) for s in range(2)]) for name in SCALINGS}
    for technique in {technique: None for technique, _ in OPENSEARCH}:
        scaled[technique] = np.array([opensearch_scale(technique, runs, s) for s in range(2)])
    for each in SETTINGS:
        weights = np.array([each.tenths / 10, 1 - each.tenths / 10])
        technique, _, mean = each.family.partition(" ")
        if each.k is not None:
            parts = np.where(runs.ranks > 0, 1 / (each.k + np.maximum(runs.ranks, 1)), 0.0)
            yield weights @ parts
        elif mean:
            yield opensearch_mean(mean, scaled[technique], weights)
        else:
            yield weights @ scaled[technique]
