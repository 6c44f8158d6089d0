"""Coordinate ascent: the weights of features that maximize a measure on the training queries."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, ClassVar, Final

import numpy as np
from pydantic import Field, field_validator

from fusion_bench.config.parameters import Parameter, choice
from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.ordering import BoolArray, FloatArray, IntArray
from fusion_bench.errors import ConfigError
from fusion_bench.fuse._base import fusions
from fusion_bench.fuse._features import FittedLinearFusion, candidate_features
from fusion_bench.fuse._trained import Trainable
from fusion_bench.measures import Measure, compute_measures, parse_measure
from fusion_bench.measures.external.external_measure import ExternalMeasure

#: Weights that are tried for a feature, in tenths.
GRID: Final = (0, 1, 2, 3, 5, 7, 10, 15, 20)
#: Relevant documents a query, on average, up to which counting is faster than sorting.
MOST_COUNTED: Final = 16
#: A smaller gain of the mean is rounding.
LEAST_GAIN: Final = 1e-12


@fusions.register
class CoordinateAscent(Trainable):
    """``coordinate_ascent``: Σ w_f·x_f, one weight after another set to the best of a grid.

    Features are those of ``logistic_regression``. It starts as reciprocal rank fusion, where each
    61/(60 + rank) weighs 1 and all else 0. In each round every weight in turn is set to the value
    of 0, .1, .2, .3, .5, .7, 1, 1.5 and 2 with the greatest mean of the measure over the training
    queries; it stays where none is greater. A round without gain is the last. There is no search
    between the values of the grid.

    Source: Metzler and Croft, "Linear feature-based models for information retrieval", Information
    Retrieval 10, 2007, section 4.

    Attributes:
        measure: What is maximized, with the dataset's binary relevance.
        rounds: At most so many.
    """

    formula: ClassVar[str] = "Σ w·feature, w maximizing a measure on a grid"
    source: ClassVar[str] = "Metzler, Croft 2007"

    method: str = "coordinate_ascent"
    measure: str = "nDCG@10"
    rounds: Annotated[int, Field(ge=1, le=100)] = 5

    @field_validator("measure")
    @classmethod
    def _check_measure(cls, name: str) -> str:
        try:
            is_external = isinstance(parse_measure(name), ExternalMeasure)
        except ConfigError as error:
            raise ValueError(str(error)) from None
        if is_external:
            raise ValueError(f"{name} is computed by ir_measures, which is too slow: give another")
        return name

    def space(self, sources: Sequence[str]) -> tuple[Parameter, ...]:  # noqa: ARG002 - see the base
        """The number of rounds: fewer stay closer to reciprocal rank fusion."""
        return (choice("rounds", 1, 2, 5),)

    def fit(self, runs: AlignedRuns) -> FittedLinearFusion:
        """Climb from reciprocal rank fusion."""
        features = candidate_features(runs, runs.sources)
        tenths = np.array([10 * (label == "rrf") for label in features.labels])
        ascent = _Ascent(runs, features.values, self._parse_measure(runs))
        for _ in range(self.rounds):
            if not ascent.climb(tenths):
                break
        return FittedLinearFusion(
            method=self.method,
            sources=runs.sources,
            fitted_on=frozenset(runs.queries),
            intercept=0.0,
            weights=tuple((tenths / 10).tolist()),
        )

    def _parse_measure(self, runs: AlignedRuns) -> Measure:
        return parse_measure(self.measure, binary_relevance=runs.binary_relevance)


class _Ascent:
    """The mean of a measure over all queries, by weights in tenths.

    Args:
        runs: The training queries.
        features: Shape (F, N).
        measure: What is maximized.
    """

    def __init__(self, runs: AlignedRuns, features: FloatArray, measure: Measure) -> None:
        self.runs, self.features, self.measure = runs, features, measure
        sizes = np.diff(runs.offsets)
        #: Shape (Q, C): where a row of the table below has a candidate.
        self.is_candidate: BoolArray = np.arange(max(sizes.max(initial=0), 1)) < sizes[:, None]
        #: Candidates whose ranks are counted; None = all are sorted.
        self.counted: IntArray | None = np.flatnonzero(runs.grades > 0)
        few = len(self.counted) <= MOST_COUNTED * len(sizes)
        if measure.required_ranks != "relevant" or measure.judged_only or not few:
            self.counted = None

    def climb(self, tenths: IntArray) -> bool:
        """Set each weight to its best value, in place; whether one changed."""
        best = self.mean(tenths @ self.features)
        is_changed = False
        for f in range(len(tenths)):
            current = int(tenths[f])
            rest = tenths @ self.features - current * self.features[f]
            for value in GRID:
                if value == current:
                    continue
                mean = self.mean(rest + value * self.features[f])
                if mean > best + LEAST_GAIN:
                    tenths[f], best, is_changed = value, mean, True
        return is_changed

    def mean(self, scores: FloatArray) -> float:
        """The mean of the measure by these scores, (N,); equal ones stand as the tie rule says."""
        table: FloatArray = np.full(self.is_candidate.shape, np.inf)
        table[self.is_candidate] = -scores
        ranks = self._sort(table) if self.counted is None else self._count(table, self.counted)
        return float(compute_measures([self.measure], self.runs, ranks).mean())

    def _sort(self, table: FloatArray) -> IntArray:
        """(N,): the ranks of all candidates."""
        order = np.argsort(table, axis=1, kind="stable")
        ranks = np.empty_like(order)
        np.put_along_axis(ranks, order, np.arange(1, len(order.T) + 1)[None], axis=1)
        return np.asarray(ranks[self.is_candidate])

    def _count(self, table: FloatArray, counted: IntArray) -> IntArray:
        """(N,): the ranks of these candidates; 0 for the others."""
        query = self.runs.query_index[counted]
        column = counted - self.runs.offsets[query]
        rows, scores = table[query], table[query, column][:, None]
        is_above = rows < scores
        is_above |= (rows == scores) & (np.arange(len(table.T)) < column[:, None])
        ranks: IntArray = np.zeros(len(self.runs.documents), dtype=np.int64)
        ranks[counted] = is_above.sum(axis=1) + 1
        return ranks
