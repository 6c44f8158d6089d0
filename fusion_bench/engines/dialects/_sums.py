"""Engines' sums: one term a source, of its rank or of its scaled score."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np

from fusion_bench.config.parameters import Parameter, integer, real
from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.ordering import FloatArray, IntArray, sum_terms
from fusion_bench.engines.dialects._translation import CanonicalFusion, EngineFusion
from fusion_bench.errors import ConfigError
from fusion_bench.methods.fuse import (
    SEMANTIC,
    Fusion,
    Homogeneity,
    RankSum,
    SourceSumFusion,
    WeightedFusion,
)
from fusion_bench.methods.fuse.rrf import RRF
from fusion_bench.methods.fuse.weighted_score import WeightedScore
from fusion_bench.methods.normalize import Normalizer, ScoreLists
from fusion_bench.methods.normalize.linear import RawScores

#: Greatest k of our ``rrf``.
GREATEST_K = 1000


class TermSum(EngineFusion, SourceSumFusion):
    """Σ_s of one term a source; a source that did not return the document adds 0."""

    homogeneity: ClassVar[Homogeneity] = 1  # the weights are factors of the terms


class RankTermSum(TermSum):
    """Σ_s of a term that depends on the rank in the source and on its weight alone."""

    @abstractmethod
    def term_at(self, ranks: IntArray, weight: float) -> FloatArray:
        """(n,): the term at each rank from 1."""

    def _tables(self, runs: AlignedRuns) -> FloatArray:
        """(S, D+1): the term of each source at each rank; 0 at rank 0."""
        weights = self.source_weights(runs.sources, runs.roles)
        ranks = np.arange(1, runs.max_rank + 1)
        tables: FloatArray = np.zeros((len(weights), runs.max_rank + 1))
        for row, weight in zip(tables, weights.tolist(), strict=True):
            row[1:] = self.term_at(ranks, weight)
        return tables

    def source_terms(self, runs: AlignedRuns) -> FloatArray:
        """(S, N): the term at the rank of each document; 0 where it was not returned."""
        tables = self._tables(runs)
        return np.array([table[ranks] for table, ranks in zip(tables, runs.ranks, strict=True)])

    def engine_form(self, runs: AlignedRuns) -> RankSum:
        """The terms at every rank there is."""
        return RankSum(tuple((s,) for s in range(len(runs.sources))), self._tables(runs), 1.0)

    def max_possible(self, runs: AlignedRuns) -> FloatArray:
        """(Q,): the score of a document that every source ranks first."""
        weights = self.source_weights(runs.sources, runs.roles).tolist()
        first = np.array([1])
        greatest = sum_terms(np.array([self.term_at(first, weight) for weight in weights]))
        return np.full(len(runs.queries), float(greatest[0]))


class RankConstant(EngineFusion):
    """A sum of terms in which one number is added to each rank.

    Attributes:
        constant_field: The field that holds it; empty = it is fixed.
        fixed_constant: The fixed one, for ranks that count from 1.
        first_rank: The rank of the first document in the engine's formula.
    """

    constant_field: ClassVar[str] = "k"
    fixed_constant: ClassVar[int] = 0
    first_rank: ClassVar[Literal[0, 1]] = 1

    @property
    def constant(self) -> float:
        """Constant that is added to a rank that counts from 1."""
        if not self.constant_field:
            return self.fixed_constant
        value: float = getattr(self, self.constant_field)
        return value - (1 - self.first_rank)

    def space(self, sources: Sequence[str]) -> tuple[Parameter, ...]:
        """The constant, evenly by its logarithm, and the weights."""
        fields, name = type(self).model_fields, self.constant_field
        weights = RRF().space(sources)[1:] if "weights" in fields else ()
        if not name:
            return weights
        is_whole = issubclass(fields[name].annotation or float, int)
        constant = integer(name, 1, GREATEST_K, log=True)
        return (constant if is_whole else real(name, 1.0, float(GREATEST_K), log=True), *weights)


class ReciprocalRanks(RankConstant, RankTermSum):
    """Σ_s w_s / (constant + rank)."""

    def term_at(self, ranks: IntArray, weight: float) -> FloatArray:
        """(n,): the term of a list of this weight."""
        return np.asarray(weight / (self.constant + ranks))

    def equivalent(self, weights: dict[str, float], /) -> Fusion | None:
        """Our ``rrf``."""
        is_known = 0 <= self.constant <= GREATEST_K
        return RRF(k=self.constant, weights=weights) if is_known else None


class CanonicalRRF(CanonicalFusion, RankConstant):
    """Our ``rrf`` under an engine's names of its parameters."""

    @property
    def canonical(self) -> RRF:
        """Our ``rrf``."""
        return RRF(k=self.constant, weights=getattr(self, "weights", {}))


class ScaledScoreSum(TermSum):
    """Σ_s w_s·x_s, x_s the scaled score of the document in the source.

    Attributes:
        scale: How every list is scaled.
        our_scale: Our normalizer of the same values on every list; None = there is none.
    """

    scale: ClassVar[Normalizer] = RawScores()
    our_scale: ClassVar[Normalizer | None] = None

    def scaled_scores(self, runs: AlignedRuns) -> FloatArray:
        """(S, N): the scaled scores; NaN where a source did not return the document."""
        return self.scale.normalize_scores(runs)

    def source_terms(self, runs: AlignedRuns) -> FloatArray:
        """(S, N): the weighted scores; 0 where there is none."""
        weights = self.source_weights(runs.sources, runs.roles)[:, None]
        scores = self.scaled_scores(runs)
        return np.where(np.isnan(scores), 0.0, weights * scores)

    def equivalent(self, weights: dict[str, float], /) -> Fusion | None:
        """Our weighted mean with 0 for missing scores."""
        if self.our_scale is None:
            return None
        return WeightedScore(normalize=self.our_scale, missing="zero", weights=weights)


class ThreeSigma(Normalizer):
    """(x − (mean − 3·sd)) / (6·sd), population sd, not clipped."""

    def scale_lists(self, lists: ScoreLists) -> FloatArray:
        """(n,): the mean 0.5."""
        size = lists.list_length()
        mean = lists.list_sum(lists.scores) / size
        sd = np.sqrt(lists.list_sum((lists.scores - mean) ** 2) / size)
        spread = lists.list_maximum() > lists.list_minimum()
        return self.divide_or_constant(lists.scores - (mean - 3 * sd), 6 * sd, spread)


#: A sum as near to 1 is taken for 1, so that dividing twice changes nothing.
TOLERANCE = 1e-12


class NormalizedWeights(WeightedFusion):
    """Weights that are divided by their sum; none = equal ones."""

    homogeneity: ClassVar[Homogeneity] = 0

    def source_weights(self, sources: Sequence[str], roles: Sequence[frozenset[str]]) -> FloatArray:
        """(S,): weights by name or role that add up to 1."""
        weights = super().source_weights(sources, roles)
        total = float(weights.sum())
        return weights if abs(total - 1) <= TOLERANCE else np.asarray(weights / total)


class PairFusion(EngineFusion):
    """A fusion of a vector search and another search.

    Attributes:
        share_field: The field with the weight of the vector search; the other one has the rest of
            1. Empty = both weigh 0.5.
        vector: Which source is the vector search; None = the only one of role ``semantic``.
    """

    share_field: ClassVar[str] = ""

    if TYPE_CHECKING:  # each engine's fusion has this field at a place of its own
        vector: str | None

    @property
    def vector_share(self) -> float:
        """The weight of the vector search; the other one has the rest of 1."""
        share: float = getattr(self, self.share_field, 0.5)
        return share

    def are_vectors(self, sources: Sequence[str], roles: Sequence[frozenset[str]]) -> list[bool]:
        """(S,): which source is the vector search."""
        return [
            SEMANTIC in role if self.vector is None else name == self.vector
            for name, role in zip(sources, roles, strict=True)
        ]

    def source_weights(self, sources: Sequence[str], roles: Sequence[frozenset[str]]) -> FloatArray:
        """(S,): the weights of the two.

        Raises:
            ConfigError: The sources are no such pair.
        """
        are_vectors = self.are_vectors(sources, roles)
        weights = np.where(are_vectors, self.vector_share, 1 - self.vector_share)
        is_rest_of_pair = len(sources) == 1 and weights[0] == 1  # the other one weighs 0
        if not (is_rest_of_pair or (len(sources) == 2 and sum(are_vectors) == 1)):
            raise ConfigError(
                "two sources are needed, one of them the vector search: give it the role "
                f"{SEMANTIC!r}, or name it by 'vector' (sources: {', '.join(sources)})"
            )
        return weights

    def space(self, sources: Sequence[str]) -> tuple[Parameter, ...]:
        """The share of the vector search; without one, what other parameters there are."""
        return (real(self.share_field, 0.0, 1.0),) if self.share_field else super().space(sources)
