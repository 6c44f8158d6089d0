"""Fusions of normalized scores, such as CombSUM and its relatives."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence

import numpy as np

from fusion_bench.config.parameters import Parameter
from fusion_bench.data.aligned_runs import AlignedRuns, cached_by_view
from fusion_bench.data.ordering import BoolArray, FloatArray, IntArray, make_readonly
from fusion_bench.methods.fuse._base import (
    Fusion,
    Homogeneity,
    ScoreTerms,
    WeightedFusion,
    match_sources,
    refuse_unmatched,
)
from fusion_bench.methods.normalize import AnyNormalizer, search_parameters
from fusion_bench.methods.normalize.linear import BySource, RawScores

#: Normalizers for which a view remembers the greatest score of each list.
TOPS_KEPT = 4


class ScoreFusion(Fusion):
    """A fusion that states its :meth:`score_terms`; the score is their sum over the divisor.

    Attributes:
        normalize: How each list's scores are scaled first.
    """

    normalize: AnyNormalizer = RawScores()

    @abstractmethod
    def score_terms(self, runs: AlignedRuns) -> ScoreTerms:
        """The terms of the score; those of a source stand in its row."""

    def fuse(self, runs: AlignedRuns) -> FloatArray:
        """(N,): the sum of the terms over the divisor."""
        return self.score_terms(runs).scores

    def space(self, sources: Sequence[str]) -> tuple[Parameter, ...]:
        """What the method has, and the normalizer with its space."""
        return (*super().space(sources), *search_parameters("normalize"))

    @property
    def keeps_single_list(self) -> bool:
        """As the normalizer does: an inverted or a flattened scale loses the order."""
        return self.normalize.keeps_order

    def check_sources(self, sources: Sequence[str], roles: Sequence[frozenset[str]]) -> None:
        """Refuse sources that do not fit the parameters, a normalizer for each source among them.

        Args:
            sources: All of a system's sources, (S,).
            roles: Of each source, (S,).

        Raises:
            ConfigError: A weight or a normalizer fits no source, or two fit one.
        """
        super().check_sources(sources, roles)
        check_normalizer(self.normalize, sources, roles)

    def zero_filled(self, runs: AlignedRuns) -> FloatArray:
        """(S, N): normalized scores; 0 where a source did not return the document."""
        return _zero_filled(runs, self.normalize)

    def greatest_scores(self, runs: AlignedRuns) -> FloatArray:
        """(S, Q): the greatest normalized score of each list; NaN for an empty one."""
        return greatest_scores(runs, self.normalize)

    def greatest_parts(self, runs: AlignedRuns) -> FloatArray:
        """(S, Q): what a list adds to a sum at most: its greatest score, or 0 by being absent."""
        return np.fmax(self.greatest_scores(runs), 0.0)

    def source_terms(
        self, runs: AlignedRuns, terms: FloatArray, divisor: FloatArray | float = 1.0
    ) -> ScoreTerms:
        """Terms that each belong to one source.

        Args:
            runs: The view.
            terms: (S, N).
            divisor: One for all, or (N,).
        """
        size = len(runs.documents)
        return ScoreTerms(
            runs.sources,
            tuple(range(len(runs.sources))),
            terms,
            np.broadcast_to(np.asarray(divisor, dtype=np.float64), (size,)),
        )


class WeightedScoreFusion(ScoreFusion, WeightedFusion):
    """A fusion of normalized scores whose sources have weights that multiply its score."""

    @property
    def weight_homogeneity(self) -> Homogeneity:
        """1: weights are factors of every term."""
        return 1

    def weight_column(self, runs: AlignedRuns) -> FloatArray:
        """(S, 1): the weights."""
        return self.source_weights(runs.sources, runs.roles)[:, None]


def check_normalizer(
    normalizer: AnyNormalizer, sources: Sequence[str], roles: Sequence[frozenset[str]]
) -> None:
    """Refuse ``by_source`` with a key that fits no source, or with two that fit one.

    Args:
        normalizer: Of any kind.
        sources: All of a system's sources, (S,).
        roles: Of each source, (S,).
    """
    if isinstance(normalizer, BySource):
        field = "normalize.sources"
        matched = match_sources(field, normalizer.sources, sources, roles)
        refuse_unmatched(field, normalizer.sources, matched, sources, roles)


@cached_by_view()
def returned_by(runs: AlignedRuns) -> BoolArray:
    """(S, N): which source returned which document."""
    returned = np.asarray(runs.ranks > 0)
    make_readonly(returned)
    return returned


@cached_by_view()
def source_counts(runs: AlignedRuns) -> IntArray:
    """(N,): n, how many sources returned each document."""
    counts = np.asarray(returned_by(runs).sum(axis=0))
    make_readonly(counts)
    return counts


@cached_by_view()
def list_counts(runs: AlignedRuns) -> IntArray:
    """(Q,): how many sources returned anything, the most that n can be."""
    return np.asarray((runs.lengths > 0).sum(axis=0))


@cached_by_view(keep=TOPS_KEPT, key=lambda normalizer: normalizer.model_dump_json())
def _zero_filled(runs: AlignedRuns, normalizer: AnyNormalizer) -> FloatArray:
    filled = np.where(returned_by(runs), normalizer.normalize_scores(runs), 0.0)
    make_readonly(filled)
    return filled


@cached_by_view(keep=TOPS_KEPT, key=lambda normalizer: normalizer.model_dump_json())
def greatest_scores(runs: AlignedRuns, normalizer: AnyNormalizer) -> FloatArray:
    """(S, Q): the greatest normalized score of each list; NaN for an empty one."""
    return list_extremes(runs, normalizer.normalize_scores(runs), np.fmax)


def list_extremes(runs: AlignedRuns, scores: FloatArray, keep: np.ufunc) -> FloatArray:
    """(S, Q): the least or greatest score of each list, NaN for an empty one.

    Args:
        runs: The view.
        scores: (S, N); NaN where a source did not return the document.
        keep: ``np.fmin`` or ``np.fmax``.
    """
    out: FloatArray = np.full((len(scores), len(runs.queries)), np.nan)
    for s, row in enumerate(scores):
        keep.at(out[s], runs.query_index, row)
    return out


def fill_missing(runs: AlignedRuns, scores: FloatArray, missing: str) -> FloatArray:
    """(S, N): scores with what counts for a document that a source did not return.

    Args:
        runs: The view.
        scores: (S, N); NaN where a source did not return the document.
        missing: ``skip`` = nothing, which stays NaN; ``zero`` = 0; ``min`` = the least score of
            the source's list (NaN where it returned nothing for the query).
    """
    if missing == "zero":
        return np.where(np.isnan(scores), 0.0, scores)
    if missing == "min":
        low = list_extremes(runs, scores, np.fmin)[:, runs.query_index]
        return np.where(np.isnan(scores), low, scores)
    return scores
