"""Logistic regression over ranks, scores and agreement."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, ClassVar, Final

import numpy as np
from pydantic import Field

from fusion_bench.config.parameters import Parameter, real
from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.ordering import FloatArray
from fusion_bench.fuse._base import fusions
from fusion_bench.fuse._features import FittedLinearFusion, candidate_features
from fusion_bench.fuse._trained import Trainable, is_relevant

#: Newton's method converges in about ten steps.
MOST_STEPS: Final = 100
#: A step that gains less than this share of the loss is the last.
LEAST_GAIN: Final = 1e-12
#: Keeps the intercept finite where no document is relevant, or all are.
INTERCEPT_PENALTY: Final = 1e-6


@fusions.register
class LogisticRegression(Trainable):
    """``logistic_regression``: the log-odds of relevance, b + Σ w_f·x_f over features x_f.

    Features are 1/rank, 61/(60 + rank) and the min-max score in each source, the share of the
    sources that returned the document, and 1/(best rank). The weights maximize the likelihood of
    the grades, relevant or not, over all candidates, less an L2 penalty on the weights of
    standardized features. An unjudged document counts as not relevant.

    Source: Hosmer and Lemeshow, "Applied logistic regression", 2000, sections 1.2 and 2.2; for the
    fusion of lists, Savoy, Le Calvé and Vrajitoru, "Report on the TREC-5 experiment", 1997.

    Attributes:
        l2: λ of the penalty λ/2·Σ w².
    """

    formula: ClassVar[str] = "b + Σ w·feature, the log-odds of relevance"
    source: ClassVar[str] = "Hosmer, Lemeshow 2000; Savoy, Le Calvé, Vrajitoru 1997"

    method: str = "logistic_regression"
    l2: Annotated[float, Field(gt=0, le=1e9)] = 1.0

    def space(self, sources: Sequence[str]) -> tuple[Parameter, ...]:  # noqa: ARG002 - see the base
        """The penalty."""
        return (real("l2", 1e-2, 1e4, log=True),)

    def fit(self, runs: AlignedRuns) -> FittedLinearFusion:
        """Newton's method on standardized features."""
        features = candidate_features(runs, runs.sources).values
        mean, spread = features.mean(axis=1), features.std(axis=1)
        spread = np.where(spread > 0, spread, 1.0)
        rows = np.ones((len(features) + 1, features.shape[1]))
        rows[1:] = (features - mean[:, None]) / spread[:, None]
        penalty = np.array([INTERCEPT_PENALTY, *[self.l2] * len(features)])
        fitted = fit_logistic(rows, is_relevant(runs).astype(np.float64), penalty)
        weights = fitted[1:] / spread
        return FittedLinearFusion(
            method=self.method,
            sources=runs.sources,
            fitted_on=frozenset(runs.queries),
            intercept=round_digits(fitted[0] - weights @ mean),
            weights=tuple(map(round_digits, weights.tolist())),
        )


def fit_logistic(rows: FloatArray, labels: FloatArray, penalty: FloatArray) -> FloatArray:
    """(F,): weights that minimize the log loss plus Σ penalty/2 · w².

    Args:
        rows: Shape (F, N): the features.
        labels: Shape (N,): 1 or 0.
        penalty: Shape (F,): above 0, so that the minimum is unique.
    """
    weights: FloatArray = np.zeros(len(rows))
    loss = _penalized_loss(weights, rows, labels, penalty)
    for _ in range(MOST_STEPS):
        chance = 1 / (1 + np.exp(-np.clip(weights @ rows, -500, 500)))
        slope = rows @ (chance - labels) + penalty * weights
        curvature = (rows * (chance * (1 - chance))) @ rows.T + np.diag(penalty)
        step = np.linalg.solve(curvature, slope)
        better = _penalized_loss(weights - step, rows, labels, penalty)
        while better > loss and np.abs(step).max() > LEAST_GAIN:  # too far: Newton's step halved
            step = step / 2
            better = _penalized_loss(weights - step, rows, labels, penalty)
        gain = loss - better
        if gain > 0:
            weights, loss = weights - step, better
        if gain <= LEAST_GAIN * loss:
            break
    return weights


def _penalized_loss(
    weights: FloatArray, rows: FloatArray, labels: FloatArray, penalty: FloatArray
) -> float:
    odds = weights @ rows
    losses = np.logaddexp(0, odds) - labels * odds
    return float(losses.sum() + (penalty * weights**2).sum() / 2)


def round_digits(value: float) -> float:
    """Ten significant digits: what depends on the machine's arithmetic lies behind them."""
    return float(f"{value:.10g}")
