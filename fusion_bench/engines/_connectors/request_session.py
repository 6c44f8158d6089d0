"""Sessions that send one request with a body a list."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, Protocol

from fusion_bench.connector import Hit, PullQuery
from fusion_bench.util.http import JsonClient


class RequestConnector(Protocol):
    """A connector that writes the bodies of requests."""

    def leg_request(self, leg: str, query: PullQuery, depth: int) -> dict[str, Any]:
        """The body of the search of one leg."""
        ...

    def fused_request(self, query: PullQuery, depth: int) -> dict[str, Any]:
        """The body of the fused search."""
        ...


class RequestSession(ABC):
    """An engine that is connected.

    Args:
        connector: Its settings.
        client: The connection.
    """

    def __init__(self, connector: RequestConnector, client: JsonClient) -> None:
        self._connector, self._client = connector, client

    async def read_leg(
        self, leg: str, query: PullQuery, *, depth: int, texts: bool
    ) -> Sequence[Hit]:
        """One search with the leg's query alone."""
        body = self._connector.leg_request(leg, query, depth)
        return await self._search(body, depth, texts=texts)

    async def read_fused(self, query: PullQuery, *, depth: int, texts: bool) -> Sequence[Hit]:
        """One search that the engine fuses."""
        body = self._connector.fused_request(query, depth)
        return await self._search(body, depth, texts=texts)

    @abstractmethod
    async def _search(self, body: dict[str, Any], depth: int, *, texts: bool) -> Sequence[Hit]:
        """The hits of the answer to a request."""
