"""Ridge regressions that predict what each weighting is worth for a query."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import numpy as np
from pydantic import Field

from fusion_bench.config.parameters import Parameter, real
from fusion_bench.data.ordering import FloatArray, IntArray
from fusion_bench.methods.policies._base import (
    FittedPolicy,
    QueryFeatures,
    TrainablePolicy,
    Variant,
    policies,
)


class FittedRegression(FittedPolicy):
    """The regressions.

    Attributes:
        center: Mean of each feature, (F,).
        scale: Standard deviation of each feature, (F,); 1 where it is 0.
        coefficients: One row a variant, (V, F).
        means: Mean value of each variant, (V,).
    """

    center: tuple[float, ...]
    scale: tuple[float, ...]
    coefficients: tuple[tuple[float, ...], ...]
    means: tuple[float, ...]

    def predict_codes(self, matrix: FloatArray) -> IntArray:
        """(Q,): the variant with the greatest prediction; of equal ones the first."""
        features = (matrix - np.array(self.center)) / np.array(self.scale)
        values = features @ np.array(self.coefficients).T + np.array(self.means)
        return np.asarray(values.argmax(axis=1))


@policies.register
class Regression(TrainablePolicy):
    """``regression``: the weights whose predicted value is greatest for the query.

    Source: ridge regression of Hoerl and Kennard, Technometrics 1970, on features as in
    OpenSearch's "Optimizing hybrid search" (query and result features predict the value of each
    weighting). One regression a weighting; the weightings are the fusion's own, and each source's
    weight times each of ``factors``. It learns from other folds than the query's.

    Features: list lengths (log), entropy, variation and top margin over its standard deviation of
    each list, overlap and rank-biased overlap of the lists, and the number of words where
    ``words`` is true. They are standardized.

    Attributes:
        factors: What each source's weight may be multiplied by.
        ridge: The penalty, in queries: 0 = least squares; a large one chooses the same for all.
        words: Whether the number of words of the query is a feature, too.
    """

    formula = "argmax over weightings v of mean(v) + β(v)·features"
    source = "Hoerl, Kennard, Ridge regression, Technometrics 1970"

    method: str = "regression"
    factors: tuple[Annotated[float, Field(gt=0)], ...] = Field((2.0, 4.0), min_length=1)
    ridge: Annotated[float, Field(ge=0)] = 30.0
    words: bool = False

    def variants(self, features: QueryFeatures) -> tuple[Variant, ...]:
        """The fusion's weights, and each source's weight times each factor."""
        sources, weights = features.runs.sources, features.weights
        rows = [
            weights,
            *(_multiply(weights, s, f) for s in range(len(weights)) for f in self.factors),
        ]
        return tuple(Variant(weights=dict(zip(sources, row.tolist(), strict=True))) for row in rows)

    def feature_matrix(self, features: QueryFeatures) -> FloatArray:
        """(Q, F): see the class."""
        top = features.top_scores()
        counts = np.maximum(np.isfinite(top).sum(axis=-1), 1)
        known = np.nan_to_num(top)
        squares = (known**2).sum(axis=-1) / counts - (known.sum(axis=-1) / counts) ** 2
        spread = np.sqrt(np.maximum(squares, 0.0))
        margins = features.margins()
        relative = np.where(spread > 0, margins / np.where(spread > 0, spread, 1.0), 0.0)
        columns = [
            *np.log1p(features.lengths),
            *features.entropies(),
            *features.variations(),
            *relative,
            features.overlaps(),
            features.rank_overlaps(),
        ]
        return np.stack([*columns, *([features.count_words()] if self.words else [])], axis=1)

    def fit(
        self, matrix: FloatArray, values: FloatArray, queries: Sequence[str]
    ) -> FittedRegression:
        """Solve (X'X + ridge·I) β = X'y for each variant, X and y centered."""
        center, deviation = matrix.mean(axis=0), matrix.std(axis=0)
        scale = np.where(deviation > 1e-12, deviation, 1.0)
        x = (matrix - center) / scale
        means = values.mean(axis=1)
        y = (values - means[:, None]).T
        penalty = (self.ridge + 1e-9) * np.eye(x.shape[1])
        coefficients = np.linalg.solve(x.T @ x + penalty, x.T @ y).T
        return FittedRegression(
            fitted_on=frozenset(queries),
            center=tuple(center.tolist()),
            scale=tuple(scale.tolist()),
            coefficients=tuple(map(tuple, coefficients.tolist())),
            means=tuple(means.tolist()),
        )

    def space(self, sources: Sequence[str]) -> tuple[Parameter, ...]:  # noqa: ARG002 - no other
        """The penalty."""
        return (real("ridge", 1.0, 10_000.0, log=True),)


def _multiply(weights: FloatArray, source: int, factor: float) -> FloatArray:
    return np.where(np.arange(len(weights)) == source, weights * factor, weights)
