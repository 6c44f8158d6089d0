"""Engines' sums: one term a source, of its rank or of its scaled score."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence

import numpy as np

from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.ordering import FloatArray, IntArray, sum_terms
from fusion_bench.engines.dialects._configuration import weights_by_source
from fusion_bench.engines.dialects._translation import Draft, EngineFusion
from fusion_bench.errors import ConfigError
from fusion_bench.experiment.system import System
from fusion_bench.methods.fuse import (
    SEMANTIC,
    Fusion,
    Homogeneity,
    RankSum,
    ScoreTerms,
    WeightedFusion,
)
from fusion_bench.methods.fuse.rrf import RRF


class TermSum(EngineFusion):
    """Σ_s of one term a source; a source that did not return the document adds 0."""

    @abstractmethod
    def source_terms(self, runs: AlignedRuns) -> FloatArray:
        """(S, N): the weighted term of each source; 0 where it adds nothing."""

    def fuse(self, runs: AlignedRuns) -> FloatArray:
        """(N,): the sum of the terms."""
        return self.score_terms(runs).scores

    def score_terms(self, runs: AlignedRuns) -> ScoreTerms:
        """One term a source."""
        return ScoreTerms(
            runs.sources,
            tuple(range(len(runs.sources))),
            self.source_terms(runs),
            np.ones(len(runs.documents)),
        )

    @property
    def weight_homogeneity(self) -> Homogeneity:
        """1: the weights are factors of the terms."""
        return 1


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


class ScaledScoreSum(TermSum):
    """Σ_s w_s·x_s, x_s the scaled score of the document in the source."""

    @abstractmethod
    def scaled_scores(self, runs: AlignedRuns) -> FloatArray:
        """(S, N): the scaled scores; NaN where a source did not return the document."""

    def source_terms(self, runs: AlignedRuns) -> FloatArray:
        """(S, N): the weighted scores; 0 where there is none."""
        weights = self.source_weights(runs.sources, runs.roles)[:, None]
        scores = self.scaled_scores(runs)
        return np.where(np.isnan(scores), 0.0, weights * scores)


#: Greatest k of our method.
GREATEST_K = 1000


class ReciprocalRanks(RankTermSum):
    """Σ_s w_s / (constant + rank)."""

    @property
    @abstractmethod
    def constant(self) -> float:
        """What is added to a rank that counts from 1."""

    def term_at(self, ranks: IntArray, weight: float) -> FloatArray:
        """(n,): the term of a list of this weight."""
        return np.asarray(weight / (self.constant + ranks))

    def equivalent(self, sources: Sequence[str], roles: Sequence[frozenset[str]]) -> Fusion | None:
        """Our ``rrf``."""
        if not 0 <= self.constant <= GREATEST_K:
            return None
        weights = self.source_weights(sources, roles).tolist()
        return RRF(k=self.constant, weights=dict(zip(sources, weights, strict=True)))


#: A sum as near to 1 is taken for 1, so that dividing twice changes nothing.
TOLERANCE = 1e-12


class NormalizedWeights(WeightedFusion):
    """Weights that are divided by their sum; none = equal ones."""

    def source_weights(self, sources: Sequence[str], roles: Sequence[frozenset[str]]) -> FloatArray:
        """(S,): weights by name or role that add up to 1."""
        weights = super().source_weights(sources, roles)
        total = float(weights.sum())
        return weights if abs(total - 1) <= TOLERANCE else np.asarray(weights / total)

    @property
    def weight_homogeneity(self) -> Homogeneity:
        """0: the weights are divided by their sum."""
        return 0


def weigh_pair(
    sources: Sequence[str], roles: Sequence[frozenset[str]], vector: str | None, share: float
) -> FloatArray:
    """(S,): ``share`` for the vector search, 1 − ``share`` for the keyword search.

    Args:
        sources: Names.
        roles: Of each source.
        vector: The vector search; None = the only source of role ``semantic``.
        share: In [0, 1].

    Raises:
        ConfigError: The sources are no such pair.
    """
    are_vectors = [
        SEMANTIC in role if vector is None else name == vector
        for name, role in zip(sources, roles, strict=True)
    ]
    weights = np.where(are_vectors, share, 1 - share)
    is_rest_of_pair = len(sources) == 1 and weights[0] == 1  # the other one weighs 0
    if not (is_rest_of_pair or (len(sources) == 2 and sum(are_vectors) == 1)):
        raise ConfigError(
            "two sources are needed, one of them the vector search: give it the role "
            f"{SEMANTIC!r}, or name it by 'vector' (sources: {', '.join(sources)})"
        )
    return weights


def find_vector_source(draft: Draft) -> str | None:
    """The vector search of a keyword and a vector search; None = the sources are no such pair."""
    vectors = [name for name in draft.sources if SEMANTIC in draft.roles[name]]
    return vectors[0] if len(draft.sources) == 2 and len(vectors) == 1 else None


#: Why a translation to such an engine is refused.
NO_PAIR = (
    "runs: one keyword search and one vector search are fused: two sources are needed, one of "
    f"them of role {SEMANTIC!r}"
)


def vector_first(system: System, vector: str | None) -> tuple[str, str]:
    """The vector search and the keyword search of a system that names the first.

    Raises:
        ConfigError: It does not, or the sources are no pair.
    """
    weights_by_source(system)
    others = [name for name in system.runs if name != vector]
    if vector is None or len(system.runs) != 2 or len(others) != 1:
        raise ConfigError(
            f"system {system.name!r}: fusion.vector must name one of two runs: translate it first"
        )
    return vector, others[0]
