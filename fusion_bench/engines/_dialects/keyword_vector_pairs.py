"""Engines that fuse one keyword search with one vector search."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fusion_bench.data.ordering import FloatArray
from fusion_bench.engines._dialects.configuration import weights_by_source
from fusion_bench.engines._dialects.translation import Draft
from fusion_bench.errors import ConfigError
from fusion_bench.experiment.system import System
from fusion_bench.fuse import SEMANTIC


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
