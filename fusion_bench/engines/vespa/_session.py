"""A connected container of Vespa."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from pydantic import JsonValue

from fusion_bench.connector import (
    Hit,
    make_hit,
)
from fusion_bench.connector.hits import incomplete_error
from fusion_bench.engines._connectors.answers import (
    field_at,
    get_permitted,
    number_at,
    refuse_error,
    require_text_field,
    rows_at,
    value_at,
)
from fusion_bench.engines._connectors.request_session import RequestSession
from fusion_bench.util.http.json_fields import malformed_error

#: A YQL query that counts the documents.
COUNT: Final = "select * from sources * where true limit 0"

if TYPE_CHECKING:
    from fusion_bench.engines.vespa.connector import VespaConnector


class VespaSession(RequestSession):
    """A container that is connected."""

    _connector: VespaConnector

    async def _search(self, body: dict[str, Any], depth: int, *, texts: bool) -> Sequence[Hit]:
        text_field = require_text_field(self._connector.text_field, texts=texts)
        data = await self._ask(body, self._connector.answer_bytes(depth, texts=True))
        # Without any hit there are no children.
        has_hits = value_at(data, "root", "fields", "totalCount") != 0
        rows = rows_at(data, "root", "children") if has_hits else []
        return [
            make_hit(
                read_id(row, self._connector.id_field),
                row.get("relevance"),
                field_at(row.get("fields"), text_field) if text_field else None,
            )
            for row in rows
        ]

    async def _ask(self, body: dict[str, Any], extra_bytes: int) -> Any:  # noqa: ANN401 - JSON
        timeout = f"{self._connector.timeout:g}s"
        data = await self._client.post_json(
            "/search/", {"timeout": timeout, **body}, extra_bytes=extra_bytes
        )
        if value_at(data, "root") is None:
            raise malformed_error("it has no root")
        refuse_error(self._client, data, "root", "errors")
        coverage = value_at(data, "root", "coverage")
        if coverage is not None and value_at(coverage, "full") is not True:
            percent = number_at(coverage, "coverage")
            raise incomplete_error(f"{percent} % of the documents were searched")
        return data

    async def read_fingerprint(self) -> Mapping[str, JsonValue]:
        """Version, and the count of documents of all schemas."""
        version = await get_permitted(self._client, "/state/v1/version")
        data = await self._ask({"yql": COUNT, "hits": 0}, 0)
        return {
            "version": value_at(version, "version"),
            "documents": number_at(data, "root", "fields", "totalCount"),
        }


def read_id(row: Mapping[str, Any], id_field: str | None) -> object:
    """The id of a document: a field, or the last part of ``id:NAMESPACE:TYPE:KEYS:ID``.

    Raises:
        ProviderError: Kind ``malformed``: it is neither.
    """
    if id_field is not None:
        return field_at(row.get("fields"), id_field)
    for value in (value_at(row, "fields", "documentid"), row.get("id")):
        parts = value.split(":", 4) if isinstance(value, str) else []
        if len(parts) == 5 and parts[0] == "id":
            return parts[4]
    raise malformed_error(
        "a hit without Vespa's document id: set id_field to a field of the summary"
    )
