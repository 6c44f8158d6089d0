"""A connected service of Azure AI Search."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pydantic import JsonValue

from fusion_bench.connector import (
    Hit,
    make_hit,
)
from fusion_bench.connector.hits import incomplete_error
from fusion_bench.engines._connectors.answers import (
    digest_of,
    get_permitted,
    number_at,
    path_of,
    refuse_error,
    require_text_field,
    rows_at,
    value_at,
)
from fusion_bench.engines._connectors.request_session import RequestSession
from fusion_bench.errors import ProviderError

if TYPE_CHECKING:
    from fusion_bench.engines.azure.connector import AzureConnector


class AzureSession(RequestSession):
    """A service that is connected."""

    _connector: AzureConnector

    async def _search(self, body: dict[str, Any], depth: int, *, texts: bool) -> Sequence[Hit]:
        text_field = require_text_field(self._connector.text_field, texts=texts)
        id_field = self._connector.id_field
        fields = ",".join((id_field, *([text_field] if text_field else [])))
        data = await self._client.post_json(
            self._path("docs", "search"),
            {**body, "select": fields},
            extra_bytes=self._connector.answer_bytes(depth, texts=texts),
        )
        refuse_error(self._client, data)
        coverage = number_at(data, "@search.coverage")
        if coverage is not None and coverage != 100:
            raise incomplete_error(f"{coverage} % of the index was searched")
        if value_at(data, "@odata.nextLink") or value_at(data, "@search.nextPageParameters"):
            raise ProviderError(
                "incomplete answer: the service returned only a part of it: pull without texts, "
                "or with a smaller depth",
                kind="too_large",
            )
        return [
            make_hit(
                row.get(id_field),
                row.get("@search.score"),
                row.get(text_field) if text_field else None,
            )
            for row in rows_at(data, "value")
        ]

    async def read_fingerprint(self) -> Mapping[str, JsonValue]:
        """Index, count of documents, digest of the index where the key may read it.

        A query key may not: only an admin key may.
        """
        count = await self._client.get_json(self._path("docs", "$count"))
        definition = await get_permitted(self._client, self._path())
        stable = {
            key: value for key, value in (definition or {}).items() if not key.startswith("@odata.")
        }
        return {
            "api_version": self._connector.api_version,
            "index": self._connector.index,
            "documents": number_at(count),
            "configuration": digest_of(stable) if stable else None,
        }

    def _path(self, *parts: str) -> str:
        version = self._connector.api_version
        return f"{path_of('indexes', self._connector.index, *parts)}?api-version={version}"
