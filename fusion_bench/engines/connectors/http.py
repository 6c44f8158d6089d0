"""Any search service behind HTTP that takes and returns JSON."""

from __future__ import annotations

import urllib.parse
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Annotated, Any, Final, Literal

from pydantic import Field, JsonValue, field_validator

from fusion_bench.config.models import StrictModel
from fusion_bench.engines.connectors import (
    EngineSession,
    Hit,
    HttpConnector,
    PullQuery,
    QueryForm,
    SourceName,
    SourceSettings,
    connectors,
)
from fusion_bench.engines.connectors._sessions import (
    digest_of,
    fill_template,
    make_hits,
    template_form,
)
from fusion_bench.errors import ConfigError
from fusion_bench.util.http_client import JsonClient, KeyHeader, open_client
from fusion_bench.util.json_text import malformed_error

#: The source whose vectors fill the fused request where it names none.
FIRST_SOURCE: Final = ""


def check_pointer(pointer: str) -> str:
    """A JSON pointer (RFC 6901): empty, or parts that each begin with a slash.

    Raises:
        ValueError: It is none.
    """
    if pointer and not pointer.startswith("/"):
        raise ValueError(f"{pointer!r} is no JSON pointer: it is empty or begins with /")
    return pointer


def follow_pointer(data: Any, pointer: str) -> Any:  # noqa: ANN401 - JSON
    """The value that a JSON pointer leads to; None if it leads to nothing."""
    for part in pointer.split("/")[1:]:
        key = part.replace("~1", "/").replace("~0", "~")
        if isinstance(data, dict):
            data = data.get(key)
        elif isinstance(data, list) and key.isdecimal() and int(key) < len(data):
            data = data[int(key)]
        else:
            return None
    return data


class HttpRequest(StrictModel):
    """One request, and where its answer holds what.

    In ``params`` and ``body`` a value that is just ``QUERY`` stands for the query's text,
    ``QUERY_VECTOR`` for its vector, ``DEPTH`` for the number of documents.

    Attributes:
        request: Method of HTTP.
        path: Path below the URL.
        params: The query part of the URL.
        body: JSON body; None = none.
        hits: JSON pointer to the list of hits.
        id: JSON pointer from a hit to its id; empty = the hit itself.
        score: JSON pointer from a hit to its score; None = there is none, and 1/rank stands for it.
        text: JSON pointer from a hit to its text; None = there is none.
        distance: Whether a smaller score is better; then its sign is turned.
    """

    request: Literal["GET", "POST", "PUT"] = "POST"
    path: str = ""
    params: dict[str, str | int | float | bool] = Field(default_factory=dict)
    body: JsonValue = None
    hits: str
    id: str = "/id"
    score: str | None = "/score"
    text: str | None = None
    distance: bool = False

    @field_validator("hits", "id", "score", "text")
    @classmethod
    def _check_pointers(cls, value: str | None) -> str | None:
        return None if value is None else check_pointer(value)

    @field_validator("path")
    @classmethod
    def _check_path(cls, value: str) -> str:
        if value and (not value.startswith("/") or "?" in value or "#" in value):
            raise ValueError(f"{value!r}: a path begins with / and has no ? or #: see params")
        return value


class HttpSource(HttpRequest, SourceSettings):
    """One request as a leg."""

    @property
    def query_form(self) -> QueryForm:
        """``vector`` where the body asks for one."""
        return template_form(self.body)


class FingerprintRequest(StrictModel):
    """A request whose answer tells one state of the index from another.

    Attributes:
        request: Method of HTTP.
        path: Path below the URL.
        body: JSON body; None = none.
        value: JSON pointer to what counts in the answer; empty = all of it.
    """

    request: Literal["GET", "POST"] = "GET"
    path: str
    body: JsonValue = None
    value: Annotated[str, Field()] = ""

    @field_validator("value")
    @classmethod
    def _check_pointer(cls, value: str) -> str:
        return check_pointer(value)


@connectors.register
class GenericHttpConnector(HttpConnector):
    """A service of your own.

    Attributes:
        key_name: Name of the header that holds the key.
        key_prefix: What stands before the key in it.
        fused: The request for the fused list; its vector is that of the first leg with one.
        fingerprint: A request that tells one state of the index from another; None = nothing does,
            and a resumed pull cannot see that the index changed.
    """

    source = "the user"

    method: str = "http"
    legs: Annotated[Mapping[SourceName, HttpSource], Field(min_length=1)]
    fused: HttpRequest | None = None
    fingerprint: FingerprintRequest | None = None
    key_name: Annotated[str, Field(pattern=r"^[A-Za-z0-9-]+$")] = "Authorization"
    key_prefix: str = "Bearer "

    def open_http(self) -> AbstractAsyncContextManager[JsonClient]:
        """A client that sends the key as it is configured."""
        header = KeyHeader(self.key_name, self.key_prefix)
        return open_client(self.url, self, header)

    @asynccontextmanager
    async def connect(self) -> AsyncIterator[EngineSession]:
        """Open the connections; nothing is asked."""
        async with self.open_http() as client:
            yield GenericHttpSession(self, client)

    def describe_score(self, source: str) -> str:
        """Where it stands in the answer."""
        settings = self.legs[source]
        if settings.score is None:
            return "1/rank: the service returns none"
        return (
            f"{'the negative distance' if settings.distance else 'the score'} at {settings.score}"
        )


class GenericHttpSession:
    """A service that is connected.

    Args:
        connector: Its settings.
        client: The connection.
    """

    def __init__(self, connector: GenericHttpConnector, client: JsonClient) -> None:
        self._connector, self._client = connector, client

    async def read_source(
        self, source: str, query: PullQuery, *, depth: int, texts: bool
    ) -> Sequence[Hit]:
        """The hits of the source's request."""
        return await self._search(self._connector.legs[source], source, query, depth, texts=texts)

    async def read_fused(self, query: PullQuery, *, depth: int, texts: bool) -> Sequence[Hit]:
        """The hits of the fused request."""
        fused = self._connector.fused
        if fused is None:
            raise ConfigError("fused: no request is configured")
        source = next(iter(query.vectors), FIRST_SOURCE)
        return await self._search(fused, source, query, depth, texts=texts)

    async def _search(
        self, request: HttpRequest, source: str, query: PullQuery, depth: int, *, texts: bool
    ) -> Sequence[Hit]:
        if texts and request.text is None:
            where = "fused" if request is self._connector.fused else f"legs.{source}"
            raise ConfigError(f"--texts: set {where}.text to the JSON pointer of a hit's text")
        params = fill_template(request.params, query, source, depth)
        tail = f"?{urllib.parse.urlencode(params)}" if params else ""
        data = await self._client.request_json(
            request.request,
            f"{request.path}{tail}",
            fill_template(request.body, query, source, depth),
            extra_bytes=self._connector.answer_bytes(depth, texts=texts),
        )
        hits = follow_pointer(data, request.hits)
        if not isinstance(hits, list):
            raise malformed_error(f"there is no list of hits at {request.hits!r}")
        rows = [_read_row(hit, request) for hit in hits]
        return make_hits(rows, is_distance=request.distance, texts=texts)

    async def read_fingerprint(self) -> Mapping[str, JsonValue]:
        """The configured value of the configured answer, or a digest of it where it is large."""
        request = self._connector.fingerprint
        if request is None:
            return {}
        data = await self._client.request_json(request.request, request.path, request.body)
        value = follow_pointer(data, request.value)
        if value is None:
            raise malformed_error(f"fingerprint: there is nothing at {request.value!r}")
        is_plain = isinstance(value, str | int | float) and len(str(value)) < 200
        return {"value": value if is_plain else digest_of(value)}


def _read_row(hit: Any, request: HttpRequest) -> tuple[object, object, object]:  # noqa: ANN401 - JSON
    """The id, the score and the text of a hit.

    Raises:
        ProviderError: Kind ``malformed``: it has no score, and one is configured.
    """
    pointers = (request.id, request.score, request.text)
    document, score, text = (None if p is None else follow_pointer(hit, p) for p in pointers)
    if request.score is not None and score is None:
        raise malformed_error(f"a hit has no score at {request.score!r}")
    return document, score, text
