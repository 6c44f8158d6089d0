"""What is asked of a connected engine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from pydantic import JsonValue

from fusion_bench.connector.hits import Hit


@dataclass(frozen=True)
class PullQuery:
    """One query as the legs search for it.

    Attributes:
        id: Its id.
        text: What is asked.
        vectors: Name of a leg → the vector of the query, where the leg searches by one.
        sparse_vectors: Name of a leg → the query's weight of each dimension, where the leg searches
            by a sparse vector.
    """

    id: str
    text: str
    vectors: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    sparse_vectors: Mapping[str, Mapping[int, float]] = field(default_factory=dict)


class EngineSession(Protocol):
    """A connected engine.

    Each call is one question; the caller repeats it, limits the calls at once and their rate, and
    checks every hit. Calls may run at the same time. A blocking library is called by
    ``call_in_thread``.
    """

    async def read_leg(
        self, leg: str, query: PullQuery, *, depth: int, texts: bool
    ) -> Sequence[Hit]:
        """The list of one leg alone, best first, as the engine orders it.

        Args:
            leg: Name of the leg.
            query: The query.
            depth: Most hits.
            texts: Whether the texts of the documents are wanted.

        Raises:
            ProviderError: The call failed, or the answer is malformed or incomplete; the kind
                decides whether it is repeated.
        """
        ...

    async def read_fused(self, query: PullQuery, *, depth: int, texts: bool) -> Sequence[Hit]:
        """The engine's own fused answer over all legs; arguments as for :meth:`read_leg`."""
        ...

    async def read_fingerprint(self) -> Mapping[str, JsonValue]:
        """What the lists depend on besides the settings.

        Such as the engine's version, the name of the index, its number of documents, a digest of
        its mapping. Two calls give the same values while nothing changes.
        """
        ...
