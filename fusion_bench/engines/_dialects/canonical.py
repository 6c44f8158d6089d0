"""Fusions of engines, and how they relate to our methods."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence

from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.ordering import FloatArray
from fusion_bench.fuse import EngineForm, Fusion, Homogeneity, ScoreTerms


class EngineFusion(Fusion):
    """A method as an engine computes it."""

    def equivalent(
        self,
        sources: Sequence[str],  # noqa: ARG002 - of some methods
        roles: Sequence[frozenset[str]],  # noqa: ARG002 - as above
    ) -> Fusion | None:
        """Our method that orders any lists as this one does; None = there is none.

        Args:
            sources: Names, (S,).
            roles: Of each source, (S,).
        """
        return None


class CanonicalFusion(EngineFusion):
    """An engine's method whose scores are those of :attr:`canonical`."""

    @property
    @abstractmethod
    def canonical(self) -> Fusion:
        """Our method that gives the same scores."""

    def equivalent(
        self,
        sources: Sequence[str],  # noqa: ARG002 - part of the contract
        roles: Sequence[frozenset[str]],  # noqa: ARG002 - part of the contract
    ) -> Fusion:
        """Our method."""
        return self.canonical

    def fuse(self, runs: AlignedRuns) -> FloatArray:
        """(N,): the scores of our method."""
        return self.canonical.fuse(runs)

    def source_weights(self, sources: Sequence[str], roles: Sequence[frozenset[str]]) -> FloatArray:
        """(S,): as our method weighs them."""
        return self.canonical.source_weights(sources, roles)

    def score_terms(self, runs: AlignedRuns) -> ScoreTerms:
        """The terms of our method."""
        return self.canonical.score_terms(runs)

    def max_possible(self, runs: AlignedRuns) -> FloatArray:
        """(Q,): as for our method."""
        return self.canonical.max_possible(runs)

    def display_scores(self, scores: FloatArray) -> FloatArray:
        """(N,): as for our method."""
        return self.canonical.display_scores(scores)

    def engine_form(self, runs: AlignedRuns) -> EngineForm | None:
        """The form of our method."""
        return self.canonical.engine_form(runs)

    @property
    def weight_homogeneity(self) -> Homogeneity:
        """As for our method."""
        return self.canonical.weight_homogeneity

    @property
    def weight_scale_invariant(self) -> bool:
        """As for our method."""
        return self.canonical.weight_scale_invariant

    @property
    def keeps_single_list(self) -> bool:
        """As for our method."""
        return self.canonical.keeps_single_list
