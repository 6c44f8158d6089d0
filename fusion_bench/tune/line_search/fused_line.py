"""Fused scores along a weight or a bonus, from a fusion's compiled form at two places.

Weights by query type add up to 1, so that one of them moves all: the scores times what the raw
weights add up to are lines again, and a common factor above 0 changes no order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.ordering import FloatArray
from fusion_bench.fuse import Compiled, Fusion, RankSum, WeightedMean
from fusion_bench.fuse._engine_form import best_ranks
from fusion_bench.tune.line_search.score_lines import Lines

__all__ = ["FusedLine", "fused_line"]


@dataclass(frozen=True, eq=False)
class FusedLine:
    """A fused list along a parameter.

    Attributes:
        view: The sources that take part.
        lines: Of the scores, but for ``divisor``.
        divisor: Of all scores alike: at w it is the first plus w times the second.
        fusions: At two places.
        forms: Of these.
        places: These.
        factors: What the scores there were multiplied by to lie on lines.
        is_weight: Whether a weight is changed, and no bonus.
    """

    view: AlignedRuns
    lines: Lines
    divisor: tuple[float, float]
    fusions: Sequence[Fusion]
    forms: Sequence[Compiled]
    places: Sequence[float]
    factors: Sequence[float]
    is_weight: bool

    @property
    def straight(self) -> bool:
        """Whether all scores have one denominator."""
        return not self.lines[3].any() and bool((self.lines[2] == 1).all())


def fused_line(
    view: AlignedRuns, fusions: Sequence[Fusion], places: Sequence[float], source: str | None
) -> FusedLine | None:
    """The line through two settings of a fusion; None = it says too little of its form.

    Args:
        view: The sources that take part in both.
        fusions: (2,).
        places: (2,): the parameter's value in each.
        source: Name or role of the sources whose weight it is; None = it is no weight.
    """
    forms = [one.compiled(view) for one in fusions]
    mine = [
        s
        for s, (name, roles) in enumerate(zip(view.sources, view.roles, strict=True))
        if source is not None and (source == name or source in roles)
    ]
    factors = [1.0, 1.0]
    if mine:
        weights = [one.source_weights(view.sources, view.roles)[mine[0]] for one in fusions]
        factors = [place / float(own) for place, own in zip(places, weights, strict=True)]
    first, second = forms
    if isinstance(first, RankSum) and isinstance(second, RankSum):
        lines = _rank_sums(view, first, [first.tables, second.tables], places, factors)
        values = [
            np.array(f * one.divisor) for f, one in zip(factors, (first, second), strict=True)
        ]
        slope, rest = straight(values, places)
        divisor = float(rest), float(slope)
    elif isinstance(first, WeightedMean) and isinstance(second, WeightedMean) and mine:
        lines, divisor = _means(view, first, mine, factors[0])
    else:
        return None
    return FusedLine(
        view, lines, divisor, fusions, (first, second), places, factors, source is not None
    )


def _rank_sums(
    view: AlignedRuns,
    form: RankSum,
    tables: Sequence[FloatArray],
    places: Sequence[float],
    factors: Sequence[float],
) -> Lines:
    slope, rest = straight([f * t for f, t in zip(factors, tables, strict=True)], places)
    size = len(view.documents)
    return _summed(view, form, rest), _summed(view, form, slope), np.ones(size), np.zeros(size)


def straight(
    values: Sequence[FloatArray], places: Sequence[float]
) -> tuple[FloatArray, FloatArray]:
    """Slope and intercept of the straight lines through two points each."""
    slope = (values[1] - values[0]) / (places[1] - places[0])
    return slope, values[0] - places[0] * slope


def _means(
    view: AlignedRuns, form: WeightedMean, mine: Sequence[int], factor: float
) -> tuple[Lines, tuple[float, float]]:
    x = form.all_features(view)
    counted = ~np.isnan(x)
    rest, own = form.weights * factor, np.zeros(len(x))
    rest[mine], own[mine] = 0.0, 1.0
    if counted.all():  # every document's mean is over all sources
        size = x.shape[1]
        return (rest @ x, own @ x, np.ones(size), np.zeros(size)), (rest.sum(), own.sum())
    x = np.where(counted, x, 0.0)
    return (rest @ x, own @ x, rest @ counted, own @ counted), (1.0, 0.0)


def _summed(view: AlignedRuns, form: RankSum, tables: FloatArray) -> FloatArray:
    """(N,): the sum of tables by rank, at each candidate's ranks."""
    total = np.zeros(len(view.documents))
    for sources, table in zip(form.columns, tables, strict=True):
        if table.any():
            total += table[best_ranks(view.ranks[list(sources)])]
    return total
