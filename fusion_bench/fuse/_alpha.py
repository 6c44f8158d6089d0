"""One number in place of two weights."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, ClassVar

import numpy as np
from pydantic import Field, model_validator

from fusion_bench.data.ordering import FloatArray
from fusion_bench.errors import ConfigError
from fusion_bench.fuse._base import WeightedFusion

SEMANTIC = "semantic"


class AlphaWeightedFusion(WeightedFusion):
    """A fusion whose weights one number may state.

    Attributes:
        alpha: The weight of the only source of role ``semantic``; the only other source weighs
            1 - alpha. None = ``weights`` states them.
    """

    hidden_if_none: ClassVar[frozenset[str]] = frozenset({"alpha"})

    alpha: Annotated[float, Field(ge=0, le=1)] | None = None

    @model_validator(mode="after")
    def _check_one_kind_of_weights(self) -> AlphaWeightedFusion:
        if self.alpha is not None and self.weights:
            raise ValueError("alpha and weights exclude each other: keep one")
        return self

    def source_weights(self, sources: Sequence[str], roles: Sequence[frozenset[str]]) -> FloatArray:
        """(S,): weights by ``alpha`` or ``weights``.

        Raises:
            ConfigError: The sources do not fit.
        """
        if self.alpha is None:
            return super().source_weights(sources, roles)
        are_semantic = [SEMANTIC in names for names in roles]
        weights = np.where(are_semantic, self.alpha, 1 - self.alpha)
        is_pair = len(sources) == 2 and sum(are_semantic) == 1
        is_rest_of_pair = len(sources) == 1 and weights[0] == 1  # the other one weighs 0
        if not (is_pair or is_rest_of_pair):
            listed = ", ".join(
                f"{source} ({', '.join(sorted(names)) or 'no role'})"
                for source, names in zip(sources, roles, strict=True)
            )
            raise ConfigError(
                f"alpha needs two sources, one of them of role {SEMANTIC!r} (sources: {listed}): "
                "use weights: {SOURCE: WEIGHT, …}"
            )
        return weights
