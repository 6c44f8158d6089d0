"""Log-odds pooling: probabilities of relevance are added as evidence."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from fusion_bench.config.parameters import Parameter, choice
from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.ordering import FloatArray, sum_terms
from fusion_bench.errors import AlignmentError
from fusion_bench.methods.fuse._base import ScoreTerms, WeightedFusion, fusions
from fusion_bench.methods.fuse.weighted_score import WeightedScoreFusion, returned_by
from fusion_bench.methods.normalize import AnyNormalizer
from fusion_bench.methods.normalize._base import sigmoid
from fusion_bench.methods.normalize.squash import Logistic

#: Probabilities are kept this far from 0 and 1, as in Lucene.
CLAMP = 1e-7
#: Normalizers that give probabilities: those that a search tries.
PROBABILITIES = ("logistic", "min_max", "dbsf", "rank")


@fusions.register
class LogOdds(WeightedScoreFusion):
    """``log_odds``: σ(S^a · Σ_s w_s·logit P_s / Σ w), S = how many sources there are.

    Source: ``LogOddsFusionQuery`` of Apache Lucene (apache/lucene PR 15827, 15948, 16410) and
    ``log_odds_conjunction`` of cognica-io/bayesian-bm25. A document that a source did not return
    has no evidence there: 0, not the evidence of a low probability. Lucene clamps P to
    [1e-7, 1 − 1e-7], as here, and computes in float32. It needs weights that add up to 1, which
    they do here after the division by Σ w.

    Example: .8 and .6 in both of two lists have the logits 1.386 and .405; their mean .896 times
    √2 is 1.267, and σ of that is .780.

    Attributes:
        normalize: How scores become the probabilities P.
        exponent: a; the number of sources grows the evidence from its mean (0) to its sum (1). It
            is the same for all documents and changes no order.
        gating: ``none`` = evidence may count against a document; ``softplus`` = log(1 + odds)
            instead of the logit, so that a match never does: the default of Lucene 10.5 before
            PR 16410.
    """

    homogeneity = 0
    reorders = True  # probabilities near 0 and 1 are clamped
    formula = "σ(S^a · Σ w·logit P / Σ w)"
    source = "Apache Lucene (LogOddsFusionQuery); bayesian-bm25"

    method: str = "log_odds"
    normalize: AnyNormalizer = Logistic()
    exponent: Annotated[float, Field(ge=0, le=1)] = 0.5
    gating: Literal["none", "softplus"] = "none"

    def space(self, sources: Sequence[str]) -> tuple[Parameter, ...]:
        """The weights, the normalizer among those that give probabilities, and the gating."""
        return (
            *WeightedFusion.space(self, sources),
            choice("normalize.method", *PROBABILITIES),
            choice("gating", "none", "softplus"),
        )

    def score_terms(self, runs: AlignedRuns) -> ScoreTerms:
        """One half, the evidence of each source, and what rounding them leaves.

        All evidence has one factor, (σ(L) − ½) / L for the pooled log-odds L, which makes the sum
        σ(L). Far below 0 the sum cancels out; the last term restores the digits that it loses.
        """
        evidence = self._from_probabilities(runs, self.zero_filled(runs))
        evidence = self._pooled(runs, np.where(returned_by(runs), evidence, 0.0))
        log_odds = sum_terms(evidence)
        slope: FloatArray = np.full(len(log_odds), 0.25)  # of σ at 0
        scores = sigmoid(log_odds)
        np.divide(scores - 0.5, log_odds, out=slope, where=log_odds != 0)
        terms = np.concatenate([np.full((1, len(slope)), 0.5), evidence * slope])
        rounding = scores - sum_terms(terms)
        return ScoreTerms(
            ("no evidence", *runs.sources, "rounding"),
            (None, *range(len(runs.sources)), None),
            np.concatenate([terms, rounding[None]]),
            np.ones(len(slope)),
        )

    def max_possible(self, runs: AlignedRuns) -> FloatArray:
        """(Q,): the score of a document with the greatest evidence of each list, if for it."""
        evidence = self._from_probabilities(
            runs, np.nan_to_num(self.greatest_scores(runs), nan=0.5)
        )
        is_known = runs.lengths > 0
        greatest = np.where(is_known, np.maximum(evidence, 0.0), 0.0)
        return np.asarray(sigmoid(sum_terms(self._pooled(runs, greatest))))

    def _pooled(self, runs: AlignedRuns, evidence: FloatArray) -> FloatArray:
        """(S, …): evidence times S^a, weight and 1 / Σ w."""
        weights = self.weight_column(runs)
        return np.asarray(
            evidence * (weights * (len(weights) ** self.exponent / sum_terms(weights)))
        )

    def _from_probabilities(self, runs: AlignedRuns, probabilities: FloatArray) -> FloatArray:
        for name, row in zip(runs.sources, probabilities, strict=True):
            if len(row) and not (row.min() >= 0 and row.max() <= 1):
                worst = row.min() if row.min() < 0 else row.max()
                raise AlignmentError(
                    f"log_odds needs probabilities from 0 to 1, and source {name!r} has "
                    f"{worst:g}: use normalize: logistic or min_max"
                )
        clamped = np.clip(probabilities, CLAMP, 1 - CLAMP)
        odds = clamped / (1 - clamped)
        return np.log1p(odds) if self.gating == "softplus" else np.log(odds)
