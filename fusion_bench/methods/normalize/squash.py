"""Scalings that are not linear in the score: curves, ranks."""

from __future__ import annotations

from typing import Annotated

import numpy as np
from pydantic import Field

from fusion_bench.data.ordering import FloatArray
from fusion_bench.methods.normalize._base import Normalizer, ScoreLists, normalizers, sigmoid


@normalizers.register
class SigmoidScale(Normalizer):
    """``sigmoid``: 1 / (1 + e^−x).

    Source: the logistic function; made for logits, as cross-encoders give them. BM25 scores of 20
    and 30 both become 1 to eight decimals, so that their order is nearly lost.

    Example: logits 2, 0 and −2 become .881, .5 and .119.
    """

    reorders = True  # different great scores become equal

    method: str = "sigmoid"

    def scale_lists(self, lists: ScoreLists) -> FloatArray:
        """(n,): in [0, 1]."""
        return sigmoid(lists.scores)


@normalizers.register
class ArctanScale(Normalizer):
    """``arctan``: 2/π · atan(x); negative scores stay negative.

    Source: as Milvus scales BM25 scores in its ``WeightedRanker``.

    Example: scores 10, 1 and 0 become .937, .5 and 0.
    """

    reorders = True  # different great scores become equal

    method: str = "arctan"

    def scale_lists(self, lists: ScoreLists) -> FloatArray:
        """(n,): in [−1, 1]."""
        return 2 / np.pi * np.arctan(lists.scores)


@normalizers.register
class Logistic(Normalizer):
    """``logistic``: 1 / (1 + e^−(α·(x − β) + logit b)), a probability of relevance.

    Source: ``BayesianScoreQuery`` of Apache Lucene (apache/lucene PR 15948): α is 1/sd and β the
    median of the scores of sampled queries. Here both default to those of the list itself, as
    txtai does (neuml/txtai PR 1041).

    Attributes:
        constant: Without ``alpha``, the probability in a list of equal scores.
        alpha: α, how steep; None = 1 / population sd of the list.
        beta: β, the score of probability b; None = the median of the list.
        base_rate: b, the share of relevant documents; .5 = no prior.
    """

    searched = False
    reorders = True  # far from β different scores become equal

    method: str = "logistic"
    constant: Annotated[float, Field(ge=0, le=1, multiple_of=0.5)] = 0.5
    alpha: Annotated[float, Field(gt=0)] | None = None
    beta: float | None = None
    base_rate: Annotated[float, Field(gt=0, lt=1)] = 0.5

    def scale_lists(self, lists: ScoreLists) -> FloatArray:
        """(n,): in [0, 1]."""
        beta = lists.list_median() if self.beta is None else np.full_like(lists.scores, self.beta)
        above = lists.scores - beta
        prior = np.log(self.base_rate / (1 - self.base_rate))
        if self.alpha is not None:
            return sigmoid(self.alpha * above + prior)
        is_spread = lists.list_maximum() > lists.list_minimum()
        steps = self.divide_or_constant(above, lists.list_deviation(), spread=is_spread)
        return np.where(is_spread, sigmoid(steps + prior), self.constant)


@normalizers.register
class RankScale(Normalizer):
    """``rank``: 1 − (r − 1) / n, n the length of the list.

    Source: Renda and Straccia, "Web metasearch: rank vs. score based rank aggregation methods", SAC
    2003; ``rank`` of ranx.

    Example: the first two documents of a list of 20 have 1 and .95.
    """

    method: str = "rank"

    def scale_lists(self, lists: ScoreLists) -> FloatArray:
        """(n,): the first document 1, the last 1/n."""
        return 1 - (lists.ranks - 1) / lists.list_length()


@normalizers.register
class BordaScale(Normalizer):
    """``borda``: 1 − (r − 1) / |C|, C the query's candidate union over the sources.

    Source: Renda and Straccia, as for ``rank``; ``borda`` of ranx, which also gives documents that
    the list lacks a share. Here the fusion's ``missing`` decides on these.

    Example: where the lists return 40 documents together, ranks 1 and 2 have 1 and .975.
    """

    method: str = "borda"

    def scale_lists(self, lists: ScoreLists) -> FloatArray:
        """(n,): the first document 1."""
        return 1 - (lists.ranks - 1) / lists.pool
