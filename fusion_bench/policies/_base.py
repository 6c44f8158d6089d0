"""The contract of a per-query policy."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np
from pydantic import field_validator

from fusion_bench.config.models import StrictModel, Weight
from fusion_bench.config.parameters import Parameter
from fusion_bench.config.registry import Method, MethodRegistry
from fusion_bench.data.ordering import FloatArray, IntArray
from fusion_bench.errors import ConfigError
from fusion_bench.fuse import fusions
from fusion_bench.policies._features import QueryFeatures

SEMANTIC = "semantic"


class Variant(StrictModel):
    """What a policy changes of the system for some queries; what is None stays.

    Attributes:
        weights: The fusion's weights, by source name or role, in place of its own.
        fusion: Another fusion, as in a system; ``weights`` are then its weights.
        rerank: False = these queries are not reranked.
    """

    weights: dict[str, Weight] | None = None
    fusion: dict[str, Any] | None = None
    rerank: bool = True

    @field_validator("fusion", mode="before")
    @classmethod
    def _check_fusion(cls, value: Any) -> Any:  # noqa: ANN401 - anything may stand in YAML
        if value is None:
            return None
        data = {"method": value} if isinstance(value, str) else value
        fusions.validate_field(data)
        return data

    @property
    def changes(self) -> str:
        """``weights bm25 1, dense 3; no reranking``, or that nothing changes."""
        parts = []
        if self.fusion is not None:
            parts.append(f"fusion {format_mapping(self.fusion)}")
        if self.weights is not None:
            parts.append(f"weights {format_mapping(self.weights)}")
        if not self.rerank:
            parts.append("no reranking")
        return "; ".join(parts) or "the system as it is"


def format_mapping(values: Mapping[str, Any]) -> str:
    """``bm25 1, dense 0.5``."""
    return ", ".join(
        f"{key} {value:g}" if isinstance(value, float) else f"{key} {value}"
        for key, value in values.items()
    )


class Choice(NamedTuple):
    """The variant of each query.

    Attributes:
        codes: Shape (Q,): index into ``variants``.
        variants: Distinct variants.
    """

    codes: IntArray
    variants: tuple[Variant, ...]


class Policy(Method):
    """Picks a variant of the system for each query, from what is known at query time.

    Attributes:
        needs_reranker: Whether it only makes sense in a system with a reranker.
    """

    needs_reranker: ClassVar[bool] = False

    @abstractmethod
    def choose(self, features: QueryFeatures) -> Choice:
        """The variant of each query; that of one never depends on another.

        Raises:
            AlignmentError: A feature that it reads is not known of a query.
            ConfigError: The sources do not fit.
        """

    def explain_choice(self, features: QueryFeatures) -> str:  # noqa: ARG002 - of some
        """Why the only query of these features gets its variant: the feature and its value."""
        return ""

    def check_sources(self, sources: Sequence[str], roles: Sequence[frozenset[str]]) -> None:
        """Refuse sources that the policy cannot tell apart.

        Args:
            sources: Names of the system's sources, (S,).
            roles: Of each source, (S,).

        Raises:
            ConfigError: They do not fit.
        """

    def fixed_variants(self) -> tuple[Variant, ...]:
        """The variants that the configuration itself names."""
        return ()

    def space(self, sources: Sequence[str]) -> tuple[Parameter, ...]:  # noqa: ARG002 - of some
        """What can be tuned, with paths relative to the policy.

        Args:
            sources: Names of the system's sources.
        """
        return ()


def is_semantic(method: str, sources: Sequence[str], roles: Sequence[frozenset[str]]) -> list[bool]:
    """(S,): which sources have the role ``semantic``.

    Raises:
        ConfigError: None of them has, or all have.
    """
    semantic = [SEMANTIC in names for names in roles]
    if all(semantic) or not any(semantic):
        listed = ", ".join(
            f"{source} ({', '.join(sorted(names)) or 'no role'})"
            for source, names in zip(sources, roles, strict=True)
        )
        raise ConfigError(
            f"policy {method!r} weighs sources of role {SEMANTIC!r} against others, and needs both "
            f"(sources: {listed}): give the runs roles in dataset.yaml"
        )
    return semantic


def index_variants(sources: Sequence[str], weights: FloatArray) -> Choice:
    """The choice of weights that differ by query.

    Args:
        sources: Names, (S,).
        weights: Shape (Q, S), of few distinct values.
    """
    rows, codes = np.unique(weights, axis=0, return_inverse=True)
    variants = tuple(Variant(weights=dict(zip(sources, row, strict=True))) for row in rows.tolist())
    return Choice(codes.reshape(-1), variants)


policies: MethodRegistry[Policy] = MethodRegistry(
    "policy", "fusion_bench.policies", "fusion_bench.policies", Policy
)
