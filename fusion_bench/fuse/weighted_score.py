"""Weighted mean of scores."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import ClassVar, Literal

import numpy as np

from fusion_bench.config.parameters import Parameter, choice
from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.ordering import FloatArray, sum_terms
from fusion_bench.fuse._base import Scales, WeightedFusion, fusions
from fusion_bench.fuse._engine_form import WeightedMean
from fusion_bench.fuse._score_terms import Parts
from fusion_bench.normalize import AnyNormalizer, normalizers
from fusion_bench.normalize.raw import Raw

__all__ = ["WeightedScore"]

#: Normalisers for which a view remembers the greatest score of each list.
TOPS_KEPT = 4


@fusions.register
class WeightedScore(WeightedFusion):
    """``weighted_score``: Σ w_s·x_s / Σ w_s over the sources that returned the document.

    Source: CONV-07-05; with ``missing: zero`` and min-max it is the convex combination of Bruch,
    Gai and Ingber, "An analysis of fusion functions for hybrid retrieval", TOIS 2023.

    Attributes:
        normalize: How each list's scores are scaled first.
        missing: What a source that did not return the document says of it: ``skip`` = nothing (it
            leaves the mean), ``zero`` = 0, ``min`` = its least score for the query (nothing where
            it returned no document for the query).
    """

    formula: ClassVar[str] = "Σ w·score / Σ w"
    source: ClassVar[str] = "CONV-07-05"

    method: Literal["weighted_score"] = "weighted_score"
    normalize: AnyNormalizer = Raw()
    missing: Literal["skip", "zero", "min"] = "skip"

    @property
    def keeps_single_list(self) -> bool:
        """As the normaliser does: an inverted or a flattened scale loses the order."""
        return self.normalize.keeps_order

    @property
    def scales(self) -> Scales:
        """Not: a mean has its weights divided out."""
        return "not"

    def space(self, sources: Sequence[str]) -> tuple[Parameter, ...]:
        """The weights, the normaliser with its own space, and what absence means."""
        built_in = normalizers.load_built_in()
        models = {name: model for name, model in built_in.items() if model.searched}
        scales = [
            one.add_prefix("normalize").add_condition("normalize.method", name)
            for name, model in models.items()
            for one in model(method=name).space()
        ]
        return (
            *super().space(sources),
            choice("normalize.method", *models),
            *scales,
            choice("missing", "skip", "zero", "min"),
        )

    def fuse(self, runs: AlignedRuns) -> FloatArray:
        """(N,): the weighted mean."""
        parts = self.parts(runs)
        return sum_terms(parts.terms) / parts.divisor

    def parts(self, runs: AlignedRuns) -> Parts:
        """A term a source, over the sum of the weights that count."""
        weights = self.source_weights(runs.sources, runs.roles)[:, None]
        scores = self._filled(runs)
        counted = ~np.isnan(scores)
        return Parts(
            runs.sources,
            tuple(range(len(runs.sources))),
            np.where(counted, weights * scores, 0.0),
            sum_terms(np.where(counted, weights, 0.0)),
        )

    def compiled(self, runs: AlignedRuns) -> WeightedMean:
        """The weights, and what each source says of each document."""
        key = f"{self.missing} {self.normalize.model_dump_json()}"
        weights = self.source_weights(runs.sources, runs.roles)
        return WeightedMean(key, partial(self._filled, runs), weights)

    def _filled(self, runs: AlignedRuns) -> FloatArray:
        """(S, N): what each source says of each document; NaN = nothing."""
        scores = self.normalize.apply(runs)
        if self.missing == "zero":
            return np.where(np.isnan(scores), 0.0, scores)
        if self.missing == "min":
            low = _extreme(runs, scores, np.fmin)[:, runs.query_index]
            return np.where(np.isnan(scores), low, scores)
        return scores

    def max_possible(self, runs: AlignedRuns) -> FloatArray:
        """(Q,): the best that the tops of the lists allow; NaN for a query without candidates."""
        weights = self.source_weights(runs.sources, runs.roles)[:, None]
        tops = runs.memo(
            ("list tops", self.normalize.model_dump_json()),
            lambda: _extreme(runs, self.normalize.apply(runs), np.fmax),
            keep=TOPS_KEPT,
        )
        if self.missing == "skip":
            return np.asarray(np.fmax.reduce(tops, axis=0))
        if self.missing == "zero":
            tops = np.fmax(tops, 0.0)
        counted = ~np.isnan(tops)
        total = sum_terms(np.where(counted, weights * tops, 0.0))
        share = sum_terms(np.where(counted, weights, 0.0))
        out: FloatArray = np.full(len(runs.queries), np.nan)
        np.divide(total, share, out=out, where=share > 0)
        return out


def _extreme(runs: AlignedRuns, scores: FloatArray, keep: np.ufunc) -> FloatArray:
    """(S, Q): the least or greatest score of each list, NaN for an empty one."""
    out: FloatArray = np.full((len(scores), len(runs.queries)), np.nan)
    for s, row in enumerate(scores):
        keep.at(out[s], runs.query_index, row)
    return out
