"""What learned fusions see of a candidate: its ranks, its scores, and how far the lists agree."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np

from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.ordering import FloatArray
from fusion_bench.fuse._base import ScoreTerms
from fusion_bench.fuse._engine_form import best_ranks
from fusion_bench.fuse._trained import FittedFusion
from fusion_bench.normalize.linear import MinMax

#: The k of the reciprocal rank that falls slowly.
SLOW_K: Final = 60


class Features(NamedTuple):
    """The features of N candidates.

    Attributes:
        labels: (F,): what each is; three of one name for each source.
        sources: (F,): the row of the source that it is about; None = of no single source.
        values: (F, N): in [0, 1]; 0 where the source did not return the document.
    """

    labels: tuple[str, ...]
    sources: tuple[int | None, ...]
    values: FloatArray


def candidate_features(runs: AlignedRuns, names: Sequence[str]) -> Features:
    """Three features a source, in the order of the names, and two of all lists together.

    Of each source: 1/rank, 61/(60 + rank), and the score by min-max over its list. Of all:
    ``agreement``, the share of the sources that returned the document, and ``best rank``, 1 over
    its best rank.

    Args:
        runs: The candidates.
        names: Of the sources; one that the runs do not have is 0 throughout.
    """
    scores = np.nan_to_num(MinMax().normalize_scores(runs))
    nothing: FloatArray = np.zeros(len(runs.documents))
    labels: list[str] = []
    sources: list[int | None] = []
    values: list[FloatArray] = []
    for name in sorted(names):
        labels += ("1/rank", "rrf", "score")
        if name not in runs.sources:
            sources += (None, None, None)
            values += (nothing, nothing, nothing)
            continue
        s = runs.sources.index(name)
        sources += (s, s, s)
        values += (_reciprocals(runs.ranks[s], 0), _reciprocals(runs.ranks[s], SLOW_K), scores[s])
    agreement = (runs.ranks > 0).sum(axis=0) / len(names)
    best = _reciprocals(best_ranks(runs.ranks), 0)
    return Features(
        (*labels, "agreement", "best rank"),
        (*sources, None, None),
        np.array([*values, agreement, best]),
    )


class FittedLinearFusion(FittedFusion):
    """A weighted sum of features.

    Attributes:
        intercept: Added to every score.
        weights: (F,): in the order of :func:`candidate_features`.
    """

    method: str
    intercept: float
    weights: tuple[float, ...]

    def compute_terms(self, runs: AlignedRuns) -> ScoreTerms:
        """The intercept, and weight times feature for each feature."""
        features = candidate_features(runs, self.sources)
        constant: FloatArray = np.full((1, len(runs.documents)), self.intercept)
        terms = np.array(self.weights)[:, None] * features.values
        return ScoreTerms(
            ("intercept", *features.labels),
            (None, *features.sources),
            np.concatenate((constant, terms)),
            np.ones(len(runs.documents)),
        )

    @property
    def keeps_single_list(self) -> bool:
        """Where no weight is negative, and every source has one that falls along its list."""
        *by_source, _, best = self.weights
        slopes = [sum(by_source[f : f + 2]) + best for f in range(0, len(by_source), 3)]
        return min(self.weights) >= 0 and min(slopes) > 0


def _reciprocals(ranks: np.typing.NDArray[np.int64], k: int) -> FloatArray:
    """(n,): (k + 1) / (k + rank); 0 at rank 0."""
    values: FloatArray = np.zeros(len(ranks))
    np.divide(k + 1, k + ranks, out=values, where=ranks > 0)
    return values
