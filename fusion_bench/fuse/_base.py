"""The contract of a fusion method."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar, Literal, TypeAlias

import numpy as np
from pydantic import Field

from fusion_bench.config.models import Weight
from fusion_bench.config.parameters import Parameter, real
from fusion_bench.config.registry import Method, MethodRegistry
from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.ordering import FloatArray, sum_terms
from fusion_bench.errors import AlignmentError, ConfigError
from fusion_bench.fuse._aliases import ALIASES
from fusion_bench.fuse._engine_form import CandidateScores, EngineForm
from fusion_bench.fuse._source_numbers import match_sources, numbers_by_source, refuse_unmatched

#: Power of a common factor of all weights that multiplies every score; None = no such power.
Homogeneity: TypeAlias = Literal[0, 1, None]

#: Greatest weight that a search tries.
GREATEST_WEIGHT = 2.0


@dataclass(frozen=True, eq=False)
class ScoreTerms:
    """The correctly rounded sum of the terms over the divisor is the score, to the last bit.

    Attributes:
        labels: What each of the T terms is.
        sources: The row of the source that a term belongs to; None = of no single source.
        terms: Shape (T, N); 0 where a term adds nothing.
        divisor: Shape (N,), or one number for all.
    """

    labels: tuple[str, ...]
    sources: tuple[int | None, ...]
    terms: FloatArray
    divisor: FloatArray

    def names(self, sources: Sequence[str]) -> tuple[str, ...]:
        """(T,): the name of each term; see :func:`name_term`.

        Args:
            sources: The fused sources.
        """
        owners = (None if row is None else sources[row] for row in self.sources)
        return tuple(map(name_term, self.labels, owners))

    @property
    def scores(self) -> FloatArray:
        """(N,): the sum of the terms over the divisor.

        Raises:
            AlignmentError: A sum is greater than any number.
        """
        try:
            with np.errstate(over="ignore", invalid="ignore"):  # math.fsum says so below
                return np.asarray(sum_terms(self.terms) / self.divisor)
        except OverflowError:
            problem = "fused scores are greater than any number: lower weights, or rescale scores"
            raise AlignmentError(problem) from None


def name_term(label: str, source: str | None) -> str:
    """Label of a term and the source that it belongs to, once; None = of no single source."""
    return label if source in {None, label} else f"{label} {source}"


class Fusion(Method):
    """Gives every candidate of every query one score; higher is better.

    A method needs ``fuse`` alone::

        @fusions.register
        class CombMax(Fusion):
            \"\"\"``comb_max``: the greatest score of any source.\"\"\"

            source: ClassVar[str] = "Fox and Shaw, Combination of multiple searches, 1994"

            method: str = "comb_max"

            def fuse(self, runs: AlignedRuns) -> FloatArray:
                return np.nanmax(runs.scores, axis=0)

    Everything else has a default and is worth overriding for one purpose each:

    - ``formula``, ``source``: what the table of methods prints;
    - ``source_weights``, or deriving from :class:`WeightedFusion`: sources of different weight;
    - ``per_source``: parameters that may be a mapping by source name or role;
    - ``space``, ``presets``: tuning;
    - ``score_terms``: an explanation of a score by its terms;
    - ``max_possible``: blends with ``retrieval: fused_max_possible``;
    - ``display_scores``: scores that are clamped after the order was decided;
    - ``engine_form``: faster evaluation by the batch engine;
    - ``weight_scale_invariant``, ``weight_homogeneity``, ``keeps_single_list``: what the contract
      tests check, and what tuning may conclude.

    Attributes:
        per_source: Parameter that may differ per source → the number of a source that its mapping
            does not name.
    """

    per_source: ClassVar[Mapping[str, float]] = {}

    @abstractmethod
    def fuse(self, runs: AlignedRuns) -> FloatArray:
        """(N,): the score that decides the order.

        Args:
            runs: Only sources that take part (:meth:`source_weights` above 0), so that every
                candidate was returned by at least one of them.
        """

    def max_possible(self, runs: AlignedRuns) -> FloatArray:
        """(Q,): no document can score higher, whatever its ranks; inf = not known."""
        return np.full(len(runs.queries), np.inf)

    def source_weights(
        self,
        sources: Sequence[str],
        roles: Sequence[frozenset[str]],  # noqa: ARG002 - weighted methods read it
    ) -> FloatArray:
        """(S,): the weight of each source; one of weight 0 takes no part at all.

        Raises:
            ConfigError: The sources do not fit the method.
        """
        return np.ones(len(sources))

    def source_numbers(
        self, field: str, sources: Sequence[str], roles: Sequence[frozenset[str]]
    ) -> FloatArray:
        """(S,): the number of each source, of a parameter that :attr:`per_source` names.

        Raises:
            ConfigError: Two keys fit one source.
        """
        return numbers_by_source(
            field, getattr(self, field), self.per_source[field], sources, roles
        )

    def check_sources(self, sources: Sequence[str], roles: Sequence[frozenset[str]]) -> None:
        """Refuse sources that do not fit the parameters.

        Args:
            sources: All of a system's sources, those of weight 0 too, (S,).
            roles: Of each source, (S,).

        Raises:
            ConfigError: A weight or a number per source fits no source, or two fit one.
        """
        self.source_weights(sources, roles)
        for field in self.per_source:
            if isinstance(numbers := getattr(self, field), Mapping):
                matched = match_sources(field, numbers, sources, roles)
                refuse_unmatched(field, numbers, matched, sources, roles)

    def display_scores(self, scores: FloatArray) -> FloatArray:
        """(N,): each score as it is shown and blended; ``scores`` decided the order."""
        return scores

    def engine_form(self, runs: AlignedRuns) -> EngineForm | None:
        """The same score in a form that the batch engine evaluates; None = it has none.

        By default the scores of :meth:`fuse`; none where displayed scores are others.

        Args:
            runs: Only sources that take part, as for :meth:`fuse`.
        """
        if type(self).display_scores is not Fusion.display_scores:
            return None
        model = type(self)
        key = f"{model.__module__}.{model.__qualname__} {self.model_dump_json()}"
        return CandidateScores(key, partial(self.fuse, runs))

    def space(self, sources: Sequence[str]) -> tuple[Parameter, ...]:  # noqa: ARG002 - as above
        """What can be tuned, with paths relative to the fusion.

        Args:
            sources: Names of the sources that it fuses.
        """
        return ()

    def split_by_source(
        self, parameter: Parameter, sources: Sequence[str]
    ) -> tuple[Parameter, ...]:
        """The parameter of a search, or one a source where it differs per source."""
        if not isinstance(getattr(self, parameter.path), Mapping):
            return (parameter,)
        return tuple(replace(parameter, path=f"{parameter.path}.{name}") for name in sources)

    def score_terms(self, runs: AlignedRuns) -> ScoreTerms:
        """The terms of the score; by default one, the score itself."""
        scores = self.fuse(runs)
        return ScoreTerms(("fused score",), (None,), scores[None], np.ones(len(scores)))

    @property
    def weight_homogeneity(self) -> Homogeneity:
        """Scaling all weights by f scales displayed and greatest scores by f to this power."""
        return None

    @property
    def weight_scale_invariant(self) -> bool:
        """Whether scaling all weights by one factor changes no rank."""
        return self.weight_homogeneity is not None

    @property
    def keeps_single_list(self) -> bool:
        """Whether a single list, ranked by its scores, comes out in its own order."""
        return True


class WeightedFusion(Fusion):
    """A fusion whose sources have weights.

    Attributes:
        weights: By source name or role, never by position; a source that is not named weighs 1.
    """

    weights: dict[str, Weight] = Field(default_factory=dict)

    def space(self, sources: Sequence[str]) -> tuple[Parameter, ...]:
        """The weight of each source; a single source needs none."""
        if len(sources) == 1:
            return ()
        return tuple(real(f"weights.{name}", 0.0, GREATEST_WEIGHT) for name in sources)

    def source_weights(self, sources: Sequence[str], roles: Sequence[frozenset[str]]) -> FloatArray:
        """(S,): weights, each source's by its name or by one of its roles.

        Raises:
            ConfigError: A weight fits no source, two fit one source, or none is above 0.
        """
        matched = match_sources("weights", self.weights, sources, roles)
        needed = [key for key, weight in self.weights.items() if weight > 0]  # 0: a source is off
        refuse_unmatched("weights", needed, matched, sources, roles)
        weights = np.array([1.0 if key is None else self.weights[key] for key in matched])
        if not (weights > 0).any():
            raise ConfigError("weights: every source weighs 0: at least one must weigh more")
        return weights


fusions: MethodRegistry[Fusion] = MethodRegistry(
    "fusion method", "fusion_bench.fuse", "fusion_bench.fusions", Fusion, ALIASES
)
