"""Any search service behind HTTP that takes and returns JSON."""

from __future__ import annotations

import urllib.parse
from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Annotated, Any, Final, Literal

from pydantic import Field, JsonValue, field_validator

from fusion_bench.config.models import StrictModel
from fusion_bench.engines.connectors import (
    Hit,
    PullQuery,
    QueryForm,
    SourceName,
    SourceSettings,
    connectors,
)
from fusion_bench.engines.connectors._sessions import (
    HttpSession,
    RequestHttpConnector,
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


def _follow_pointer(data: Any, pointer: str) -> Any:  # noqa: ANN401 - JSON
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


class GenericHttpSession(HttpSession):
    """A service that is connected.

    Args:
        connector: Its settings.
        client: The connection.
    """

    _connector: GenericHttpConnector

    async def _search(
        self, body: dict[str, Any], source: str, depth: int, *, texts: bool
    ) -> Sequence[Hit]:
        request = self._connector.find_request(source)
        if texts and request.text is None:
            where = f"legs.{source}" if source else "fused"
            raise ConfigError(f"--texts: set {where}.text to the JSON pointer of a hit's text")
        params = urllib.parse.urlencode(body["params"])
        data = await self._client.request_json(
            request.request,
            f"{request.path}?{params}" if params else request.path,
            body["body"],
            extra_bytes=self._connector.answer_bytes(depth, texts=texts),
        )
        hits = _follow_pointer(data, request.hits)
        if not isinstance(hits, list):
            raise malformed_error(f"there is no list of hits at {request.hits!r}")
        pointers = (request.id, request.score, request.text)
        rows = []
        for hit in hits:
            name, score, text = (None if p is None else _follow_pointer(hit, p) for p in pointers)
            if request.score is not None and score is None:
                raise malformed_error(f"a hit has no score at {request.score!r}")
            rows.append((name, score, text))
        return make_hits(rows, is_distance=request.distance, texts=texts)

    async def read_fingerprint(self) -> Mapping[str, JsonValue]:
        """The configured value of the configured answer, or a digest of it where it is large."""
        request = self._connector.fingerprint
        if request is None:
            return {}
        data = await self._client.request_json(request.request, request.path, request.body)
        value = _follow_pointer(data, request.value)
        if value is None:
            raise malformed_error(f"fingerprint: there is nothing at {request.value!r}")
        is_plain = isinstance(value, str | int | float) and len(str(value)) < 200
        return {"value": value if is_plain else digest_of(value)}


def _fill_request(
    request: HttpRequest, query: PullQuery, source: str, depth: int
) -> dict[str, Any]:
    template = {"params": request.params, "body": request.body}
    filled: dict[str, Any] = fill_template(template, query, source, depth)
    return filled


@connectors.register
class GenericHttpConnector(RequestHttpConnector):
    """A service of your own.

    Attributes:
        key_name: Name of the header that holds the key.
        key_prefix: What stands before the key in it.
        fused: The request for the fused list; its vector is that of the first leg with one.
        fingerprint: A request that tells one state of the index from another; None = nothing does,
            and a resumed pull cannot see that the index changed.
    """

    source = "the user"
    session_type = GenericHttpSession

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

    def find_request(self, source: str) -> HttpRequest:
        """The request of a source; the fused one has no name.

        Raises:
            ConfigError: It is not configured.
        """
        request = self.legs[source] if source else self.fused
        if request is None:
            raise ConfigError("fused: no request is configured")
        return request

    def source_request(self, source: str, query: PullQuery, depth: int) -> dict[str, Any]:
        """Parameters and body of the source's request."""
        return _fill_request(self.find_request(source), query, source, depth)

    def fused_request(self, query: PullQuery, depth: int) -> dict[str, Any]:
        """Parameters and body of the fused request."""
        first = next(iter(query.vectors), FIRST_SOURCE)
        return _fill_request(self.find_request(""), query, first, depth)

    def describe_score(self, source: str) -> str:
        """Describe the score by its place in the answer."""
        settings = self.legs[source]
        if settings.score is None:
            return "1/rank: the service returns none"
        return (
            f"{'the negative distance' if settings.distance else 'the score'} at {settings.score}"
        )
