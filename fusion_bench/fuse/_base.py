"""The contract of a fusion method."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import ClassVar, Literal, TypeAlias

import numpy as np
from pydantic import Field

from fusion_bench.config.models import Weight
from fusion_bench.config.parameters import Parameter, Params, real
from fusion_bench.config.registry import Method, MethodRegistry
from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.ordering import FloatArray
from fusion_bench.errors import ConfigError
from fusion_bench.fuse._engine_form import Compiled
from fusion_bench.fuse._score_terms import Parts

__all__ = ["Fusion", "Scales", "WeightedFusion", "fusions"]

#: What scaling all weights by one factor does to the reported scores.
Scales: TypeAlias = Literal["not", "alike", "otherwise"]

#: Greatest weight that a search looks at: ADR-005's 2 is inside.
GREATEST_WEIGHT = 2.0


class Fusion(Method):
    """Gives every candidate of every query one score; higher is better.

    Attributes:
        method: Its name.
        formula: What it computes, in one line, for the table of methods.
        source: Where the formula comes from.
    """

    formula: ClassVar[str]
    source: ClassVar[str]

    method: str

    @abstractmethod
    def fuse(self, runs: AlignedRuns) -> FloatArray:
        """(N,): the score that decides the order.

        Args:
            runs: Only sources that take part (:meth:`source_weights` above 0), so that every
                candidate was returned by at least one of them.
        """

    def max_possible(self, runs: AlignedRuns) -> FloatArray:
        """(Q,): no document can score higher, whatever place the lists give it; inf = not known."""
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

    def reported(self, scores: FloatArray) -> FloatArray:
        """(N,): what is shown and blended; the order was decided on ``scores``."""
        return scores

    def compiled(self, runs: AlignedRuns) -> Compiled | None:  # noqa: ARG002 - of those that can
        """The same score in a form that the engine can count with; None = it has none.

        Args:
            runs: Only sources that take part, as for :meth:`fuse`.
        """
        return None

    def space(self, sources: Sequence[str]) -> tuple[Parameter, ...]:  # noqa: ARG002 - as above
        """What can be tuned, with paths relative to the fusion.

        Args:
            sources: Names of the sources it would fuse.
        """
        return ()

    def suggestions(self) -> tuple[Params, ...]:
        """Values that its sources name, worth a trial before any search; relative paths."""
        return ()

    def parts(self, runs: AlignedRuns) -> Parts:
        """What the score is made of; one term, the score itself, where a method says no more."""
        scores = self.fuse(runs)
        return Parts(("fused score",), (None,), scores[None], np.ones(len(scores)))

    @property
    def scale_free(self) -> bool:
        """Whether scaling all weights by one factor changes no rank."""
        return True

    @property
    def scales(self) -> Scales:
        """What scaling all weights by one factor does to the reported scores.

        ``not`` = nothing, ``alike`` = it scales all of them by that factor, and what they cannot
        exceed too, ``otherwise`` = something else, or it is not known.
        """
        return "otherwise"

    @property
    def keeps_single_list(self) -> bool:
        """Whether a single list, ranked by its scores, comes out in its own order."""
        return True


class WeightedFusion(Fusion):
    """A fusion whose sources have weights.

    Attributes:
        weights: By source name or role, never by position; what is not named weighs 1.
    """

    weights: dict[str, Weight] = Field(default_factory=dict)

    def space(self, sources: Sequence[str]) -> tuple[Parameter, ...]:
        """The weight of each source; a single one has nothing to be weighed against."""
        if len(sources) == 1:
            return ()
        return tuple(real(f"weights.{name}", 0.0, GREATEST_WEIGHT) for name in sources)

    def source_weights(self, sources: Sequence[str], roles: Sequence[frozenset[str]]) -> FloatArray:
        """(S,): weights, each source's by its name or by one of its roles.

        Raises:
            ConfigError: A weight fits no source, two fit one source, or none is above 0.
        """
        fits = [
            [key for key in self.weights if key == name or key in role]
            for name, role in zip(sources, roles, strict=True)
        ]
        for name, keys in zip(sources, fits, strict=True):
            if len(keys) > 1:
                raise ConfigError(
                    f"weights: {' and '.join(map(repr, keys))} both fit source {name!r}: "
                    "keep the one that is meant"
                )
        used = {key for keys in fits for key in keys}
        for key in self.weights:
            if key not in used and self.weights[key] > 0:  # a strategy that is off weighs 0
                known = sorted({*sources, *(role for names in roles for role in names)})
                raise ConfigError(
                    f"weights: {key!r} fits no source in use (names and roles in use: "
                    f"{', '.join(known)})"
                )
        weights = np.array([self.weights[keys[0]] if keys else 1.0 for keys in fits])
        if not (weights > 0).any():
            raise ConfigError("weights: every source weighs 0: at least one must weigh more")
        return weights


fusions: MethodRegistry[Fusion] = MethodRegistry(
    "fusion method", "fusion_bench.fuse", "fusion_bench.fusions", Fusion
)
