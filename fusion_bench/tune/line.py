"""Where each document's score goes along one parameter, everything else standing still.

Most scores are a fraction of two straight lines in one weight: Σ w/(k+r) has the denominator 1, a
weighted mean over what the sources returned has its own for each document. So the value at which
one document passes another is known exactly, and with it every place where a measure can change.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from fusion_bench.align import AlignedRuns
from fusion_bench.blend.none import NoBlend
from fusion_bench.evaluate import System, rank
from fusion_bench.fuse import Compiled, Fusion, RankSum, WeightedMean
from fusion_bench.order import FloatArray, IntArray, freeze
from fusion_bench.space import Parameter, Params
from fusion_bench.tune.place import CONDITION, ENTRY, WEIGHT
from fusion_bench.tune.problem import Problem

__all__ = ["Line", "line"]

#: Documents that a blend weighs against each other.
BLENDED = 0


@dataclass(frozen=True, eq=False)
class Line:
    """The scores of N candidates as (a + w·b) / (c + w·d).

    Attributes:
        runs: The candidates, in the order that settles ties.
        a: Shape (N,).
        b: Shape (N,).
        c: Shape (N,).
        d: Shape (N,): 0 throughout where every score is a straight line.
        moving: Shape (N,): candidates that can change places with each other.
        placed: Shape (N,): place of every other candidate; 0 = dropped.
        top_k: Where the final list is cut.
    """

    runs: AlignedRuns
    a: FloatArray
    b: FloatArray
    c: FloatArray
    d: FloatArray
    moving: NDArray[np.bool_]
    placed: IntArray
    top_k: int | None

    @property
    def lines(self) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """a, b, c and d."""
        return self.a, self.b, self.c, self.d

    @cached_property
    def straight(self) -> bool:
        """Whether all scores are straight lines over one denominator."""
        return not self.d.any() and bool((self.c == 1).all())

    def __post_init__(self) -> None:
        for array in (self.a, self.b, self.c, self.d, self.moving, self.placed):
            freeze(array)


def line(problem: Problem, params: Params, parameter: Parameter) -> Line | None:
    """The line through ``params`` along one parameter; None = the scores are no such fractions.

    Args:
        problem: On the queries that are tuned on.
        params: Where the line passes through.
        parameter: A real number without steps.
    """
    if parameter.kind != "float" or parameter.step is not None:
        return None
    low, high = parameter.bounds
    if low == high:
        return None
    path = CONDITION.sub("", parameter.path)

    def at(share: float) -> System:
        return problem.build({**params, parameter.path: low + share * (high - low)})

    system = at(0.5)
    if system.types is not None or system.min_relevance is not None:
        return None
    if (weight := WEIGHT.fullmatch(path)) and isinstance(system.blend, NoBlend):
        return _along_weight(problem, at, system.runs.index(weight[1]))
    entry = ENTRY.fullmatch(path)
    is_share = entry is not None and entry[1] == "blend.tiers" and entry[3] == "value"
    if is_share or path in {"blend.beta", "blend.rest"}:
        return _along_share(problem, at, (low, high))
    return None


def _along_weight(problem: Problem, at: Callable[[float], System], source: int) -> Line | None:
    """Along the weight of a source: from the fusion's compiled form at two weights."""
    systems = [at(share) for share in (0.25, 0.75)]
    views = [system.view(problem.runs) for system in systems]
    view = views[0]
    if len(view.sources) < 2 or view.sources != views[1].sources:
        return None
    name = systems[0].runs[source]
    weights = [_weight(system.fusion, view, name) for system in systems]
    forms = [system.fusion.compiled(view) for system in systems]
    found = _coefficients(view, forms, weights, view.sources.index(name))
    if found is None:
        return None
    moving = np.ones(len(view.documents), dtype=bool)
    return Line(view, *found, moving, np.zeros(len(moving), dtype=np.int64), systems[0].top_k)


def _weight(fusion: Fusion, view: AlignedRuns, name: str) -> float:
    return float(fusion.source_weights(view.sources, view.roles)[view.sources.index(name)])


def _coefficients(
    view: AlignedRuns, forms: list[Compiled | None], weights: list[float], source: int
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray] | None:
    size = len(view.documents)
    first, second = forms
    if isinstance(first, RankSum) and isinstance(second, RankSum):
        slope = (second.tables - first.tables) / (weights[1] - weights[0])
        rest = first.tables - weights[0] * slope
        a, b = _summed(view, first, rest), _summed(view, first, slope)
        return a, b, np.ones(size), np.zeros(size)
    if isinstance(first, WeightedMean):
        x = first.features()
        counted = ~np.isnan(x)
        x = np.where(counted, x, 0.0)
        rest = first.weights.copy()
        rest[source] = 0.0
        return rest @ x, x[source].copy(), rest @ counted, counted[source].astype(float)
    return None


def _summed(view: AlignedRuns, form: RankSum, tables: FloatArray) -> FloatArray:
    """(N,): the sum of tables by rank, at each candidate's ranks."""
    total = np.zeros(len(view.documents))
    for sources, table in zip(form.columns, tables, strict=True):
        if table.any():
            total += table[_best(view, sources)]
    return total


def _best(view: AlignedRuns, sources: tuple[int, ...]) -> IntArray:
    """(N,): the best rank among some sources; 0 = none returned the document."""
    if len(sources) == 1:
        return np.asarray(view.ranks[sources[0]])
    nowhere = np.iinfo(np.int64).max
    found = np.full(len(view.documents), nowhere)
    for source in sources:
        ranks = view.ranks[source]
        np.minimum(found, ranks, out=found, where=ranks > 0)
    return np.where(found == nowhere, 0, found)


def _along_share(
    problem: Problem, at: Callable[[float], System], bounds: tuple[float, float]
) -> Line:
    """Along a share of a blend: the fused list stands, and two points tell a straight line."""
    low, high = (rank(at(share), problem.runs, problem.spaces) for share in (0.0, 1.0))
    moving = low.tiers == BLENDED
    b = np.where(moving, (high.deciding - low.deciding) / (bounds[1] - bounds[0]), 0.0)
    a = np.where(moving, low.deciding - bounds[0] * b, 0.0)
    placed = np.where(moving, 0, low.placed)
    size = len(a)
    return Line(low.runs, a, b, np.ones(size), np.zeros(size), moving, placed, low.top_k)
