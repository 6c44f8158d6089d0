"""Ways to ask an engine: client library, HTTP request, template, server or folder."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final, Protocol, TypeVar

from pydantic import Field, model_validator

from fusion_bench.engines.connectors import Hit, HttpConnector, PullQuery, QueryForm, call_in_thread
from fusion_bench.engines.connectors._answers import vector_of
from fusion_bench.engines.dialects._search_requests import QUERY, VECTOR
from fusion_bench.errors import FusionBenchError, ProviderError
from fusion_bench.util.http_client import JsonClient

T = TypeVar("T")

#: Characters of a library's error that are shown.
LONGEST_MESSAGE: Final = 300


async def call_library(title: str, question: Callable[[], T], timeout: float) -> T:
    """Call a blocking function of a library in a thread.

    Args:
        title: The engine's name, for errors.
        question: What is called.
        timeout: Seconds after which its answer is no longer waited for.

    Raises:
        ProviderError: It took too long (kind ``timeout``), or raised (kind ``refused``).
    """
    try:
        with wrap_errors(title):
            return await asyncio.wait_for(call_in_thread(question), timeout)
    except TimeoutError:
        raise ProviderError(
            f"{title}: no answer within {timeout:g} seconds", kind="timeout"
        ) from None


@contextmanager
def wrap_errors(title: str) -> Iterator[None]:
    """Turn whatever a library raises into an error of one line.

    Raises:
        ProviderError: Kind ``refused``; a timeout and our own errors pass.
    """
    try:
        yield
    except (FusionBenchError, TimeoutError):
        raise
    except Exception as error:  # noqa: BLE001 - a library may raise anything
        text = " ".join(str(error).split())[:LONGEST_MESSAGE] or type(error).__name__
        raise ProviderError(f"{title}: {text}", kind="refused") from None


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


class ServerOrFolder(HttpConnector):
    """An engine at a URL, or in a folder of this machine.

    Attributes:
        url: URL of the server.
        path: Folder or file that the engine's library opens instead of a server; by default it is
            asked one question at a time, so that latencies hold no waiting.
    """

    url: str = ""
    path: str | None = Field(default=None, min_length=1)

    @model_validator(mode="before")
    @classmethod
    def _ask_folders_in_turn(cls, data: Any) -> Any:  # noqa: ANN401 - anything may stand in YAML
        if isinstance(data, Mapping) and data.get("path") is not None:
            return {"concurrency": 1, **data}
        return data

    @model_validator(mode="after")
    def _check_place(self) -> ServerOrFolder:
        if bool(self.url) == (self.path is not None):
            raise ValueError("either url (of a server) or path (of a local folder) is needed")
        return self


#: Stands for the number of documents that are asked for.
DEPTH: Final = "DEPTH"


def fill_template(template: Any, query: PullQuery, leg: str, depth: int) -> Any:  # noqa: ANN401 - JSON
    """A template with the query in it.

    A text that is nothing but a placeholder is replaced: ``QUERY`` by the query's text,
    ``QUERY_VECTOR`` by the numbers of its vector, ``DEPTH`` by the number of documents. So no
    query can change the structure of a request.

    Args:
        template: A JSON value.
        query: The query.
        leg: Whose vector is meant.
        depth: How many documents are asked for.
    """
    if isinstance(template, Mapping):
        return {key: fill_template(value, query, leg, depth) for key, value in template.items()}
    if isinstance(template, list | tuple):
        return [fill_template(value, query, leg, depth) for value in template]
    if template == QUERY:
        return query.text
    if template == VECTOR:
        return vector_of(query, leg)
    return depth if template == DEPTH else template


def template_form(template: Any) -> QueryForm:  # noqa: ANN401 - JSON
    """What a template searches with."""
    if isinstance(template, Mapping):
        template = [*template.values()]
    if isinstance(template, list | tuple):
        forms = {template_form(value) for value in template}
        return "vector" if "vector" in forms else "text"
    return "vector" if template == VECTOR else "text"
