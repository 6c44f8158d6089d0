"""One variant where the lists agree, another where they differ."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, ClassVar, Literal

import numpy as np
from pydantic import Field, model_validator

from fusion_bench.config.limits import Rank
from fusion_bench.config.parameters import Parameter, choice, real
from fusion_bench.policies._base import Choice, Policy, Variant, policies
from fusion_bench.policies._features import DEPTH, QueryFeatures

UNCHANGED = Variant()


@policies.register
class OverlapRules(Policy):
    """``overlap_rules``: variant ``below`` where the overlap is under a threshold, else ``above``.

    Source: rank-biased overlap of Webber, Moffat and Zobel, TOIS 2010; the rule is the plainest of
    those that choose by the agreement of lists. A variant may give ``weights``, a ``fusion`` with
    its k, or ``rerank: false``; one that is left out leaves the system as it is.

    Example: ``{threshold: 0.2, below: {weights: {semantic: 3}}}`` trusts the semantic list where
    the lists share fewer than 2 of their first 10 documents.

    Attributes:
        measure: ``overlap`` = share of the first documents in common; ``rbo`` = rank-biased
            overlap.
        depth: How many documents of each list are looked at.
        threshold: In [0, 1].
        below: What changes for queries under the threshold.
        above: What changes for the others.
    """

    formula: ClassVar[str] = "overlap < threshold → below, otherwise → above"
    source: ClassVar[str] = "Webber, Moffat, Zobel, TOIS 2010 (rank-biased overlap)"

    method: str = "overlap_rules"
    measure: Literal["overlap", "rbo"] = "overlap"
    depth: Rank = DEPTH
    threshold: Annotated[float, Field(ge=0, le=1)] = 0.2
    below: Variant = UNCHANGED
    above: Variant = UNCHANGED

    @model_validator(mode="after")
    def _check_variants(self) -> OverlapRules:
        if self.below == self.above:
            raise ValueError(
                "below and above must differ: give one of them weights, a fusion or rerank: false"
            )
        return self

    def choose(self, features: QueryFeatures) -> Choice:
        """0 = ``below``, 1 = ``above``."""
        read = features.overlaps if self.measure == "overlap" else features.rank_overlaps
        codes = (read(self.depth) >= self.threshold).astype(np.int64)
        return Choice(codes, (self.below, self.above))

    def explain_choice(self, features: QueryFeatures) -> str:
        """The overlap beside the threshold."""
        is_share = self.measure == "overlap"
        value = float((features.overlaps if is_share else features.rank_overlaps)(self.depth)[0])
        name = "overlap" if is_share else "rank-biased overlap"
        side = "below" if value < self.threshold else "not below"
        variant = "below" if value < self.threshold else "above"
        return (
            f"{variant}, because the {name} of the first {self.depth} documents is {value:.4g}, "
            f"{side} {self.threshold:g}"
        )

    def fixed_variants(self) -> tuple[Variant, ...]:
        """The two variants."""
        return self.below, self.above

    def space(self, sources: Sequence[str]) -> tuple[Parameter, ...]:  # noqa: ARG002 - no other
        """Overlap and threshold."""
        return choice("measure", "overlap", "rbo"), real("threshold", 0.0, 1.0)
