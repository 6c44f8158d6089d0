"""Base class of connectors of engines behind HTTP."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from typing import ClassVar, Final

from fusion_bench.config.fields.server import HttpServerModel
from fusion_bench.connector._base import Connector
from fusion_bench.util.http import BEARER, JsonClient, KeyHeader, open_client

#: Bytes of an answer for each hit: its id and its score among the engine's own fields; its text.
HIT_BYTES: Final = 4 * 2**10
TEXT_BYTES: Final = 64 * 2**10


class HttpConnector(Connector, HttpServerModel):
    """A search engine behind HTTP.

    A session posts with :meth:`open_http`; the answer to a question is limited by
    :meth:`answer_bytes`.

    Attributes:
        key_header: How the key is sent.
        url: URL of the server, which may be a local one.
        key: Environment variable that holds the API key; None = no authentication.
    """

    operational: ClassVar[frozenset[str]] = Connector.operational | {"allow_http"}
    key_header: ClassVar[KeyHeader] = BEARER

    url: str
    key: str | None = None

    def open_http(self) -> AbstractAsyncContextManager[JsonClient]:
        """A client of the server.

        Raises:
            ConfigError: The key is missing.
            MissingExtraError: httpx is not installed.
        """
        return open_client(self.url, self, self.key_header)

    def answer_bytes(self, depth: int, *, texts: bool) -> int:
        """By how much an answer may be longer than 2 MB: ``extra_bytes`` of a request."""
        return depth * (HIT_BYTES + (TEXT_BYTES if texts else 0))
