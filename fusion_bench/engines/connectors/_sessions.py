"""Ways to ask an engine: client library, HTTP request, template, server or folder."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, Any, ClassVar, Final, TypeVar

from pydantic import Field, JsonValue, model_validator

from fusion_bench.engines.connectors import (
    EngineSession,
    Hit,
    HttpConnector,
    PullQuery,
    QueryForm,
    call_in_thread,
    make_hit,
)
from fusion_bench.engines.connectors._answers import (
    FusedByDialect,
    field_at,
    refuse_error,
    require_text_field,
    rows_at,
    signed_score,
    sparse_vector_of,
    value_at,
    vector_of,
)
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


def json_sparse(query: PullQuery, leg: str) -> dict[str, list[Any]]:
    """The sparse vector that a leg searches by, as ``indices`` and ``values``.

    Raises:
        ConfigError: The query has none.
    """
    weights = sorted(sparse_vector_of(query, leg).items())
    return {
        "indices": [dimension for dimension, _ in weights],
        "values": [weight for _, weight in weights],
    }


class Session(ABC):
    """An engine that is connected: its connector writes what is asked, and its hits are rows.

    Args:
        connector: Its settings.

    Attributes:
        own_id: The keys that lead from a row to the engine's own id of the document.
        score: Those to its score.
        fields: Those to the fields of the document.
        signs: Leg → −1 where its scores are distances; other legs have 1.
    """

    own_id: tuple[str, ...] = ("id",)
    score: tuple[str, ...] = ("score",)
    fields: tuple[str, ...] = ()
    _connector: RequestConnector

    def __init__(self, connector: RequestConnector) -> None:
        self._connector = connector
        self.signs: Mapping[str, int] = {}

    async def read_leg(
        self, leg: str, query: PullQuery, *, depth: int, texts: bool
    ) -> Sequence[Hit]:
        """One search with the leg's query alone."""
        body = self._connector.leg_request(leg, query, depth)
        return await self._search(body, leg, depth, texts=texts)

    async def read_fused(self, query: PullQuery, *, depth: int, texts: bool) -> Sequence[Hit]:
        """One search that the engine fuses."""
        body = self._connector.fused_request(query, depth)
        return await self._search(body, "", depth, texts=texts)

    @abstractmethod
    async def _search(
        self, body: dict[str, Any], leg: str, depth: int, *, texts: bool
    ) -> Sequence[Hit]:
        """The hits of the answer to a request; the leg of the fused one has no name."""

    @abstractmethod
    async def read_fingerprint(self) -> Mapping[str, JsonValue]:
        """What the lists depend on besides the settings."""

    def _make_hits(self, rows: Iterable[Mapping[str, Any]], leg: str, *, texts: bool) -> list[Hit]:
        """The hits of the rows of an answer.

        Raises:
            ProviderError: Kind ``malformed``: a value breaks a rule.
        """
        id_field, text_field = self._connector.id_field, self._connector.text_field
        hits = []
        for row in rows:
            known = value_at(row, *self.fields)
            document = self._read_id(row) if id_field is None else field_at(known, id_field)
            text = field_at(known, text_field) if texts and text_field else None
            hits.append(make_hit(document, self._read_score(row, leg), text))
        return hits

    def _read_id(self, row: Mapping[str, Any]) -> object:
        return value_at(row, *self.own_id)

    def _read_score(self, row: Mapping[str, Any], leg: str) -> object:
        return signed_score(value_at(row, *self.score), self.signs.get(leg, 1))


class RequestConnector(FusedByDialect):
    """A connector that writes the requests of its sessions.

    Attributes:
        id_field: The field that holds a document's id; None = the engine's own id.
        text_field: The field that holds its text.
    """

    if TYPE_CHECKING:  # each engine has these fields at a place, and with a default, of its own
        id_field: str | None
        text_field: str | None

    @abstractmethod
    def leg_request(self, leg: str, query: PullQuery, depth: int) -> dict[str, Any]:
        """The search of one leg."""

    @abstractmethod
    def fused_request(self, query: PullQuery, depth: int) -> dict[str, Any]:
        """The fused search, as the export writes it, with this query in it."""

    def read_fields(self, *, texts: bool) -> list[str]:
        """The fields of a document that are read: that of its id, and of its text."""
        fields = (self.id_field, require_text_field(self.text_field, texts=texts))
        return [name for name in fields if name is not None]


class HttpSession(Session):
    """A server that is connected.

    Args:
        connector: Its settings.
        client: The connection.

    Attributes:
        rows: The keys that lead to the hits of an answer.
    """

    rows: tuple[str, ...] = ()
    _connector: RequestHttpConnector

    def __init__(self, connector: RequestHttpConnector, client: JsonClient) -> None:
        super().__init__(connector)
        self._client = client

    async def prepare(self) -> None:
        """Ask what later answers are read by."""

    async def _search(
        self, body: dict[str, Any], leg: str, depth: int, *, texts: bool
    ) -> Sequence[Hit]:
        selected = self._select_fields(body, self._connector.read_fields(texts=texts))
        extra = self._connector.answer_bytes(depth, texts=texts)
        data = await self._post(self._search_path(leg), selected, extra)
        return self._make_hits(self._find_rows(data), leg, texts=texts)

    async def _post(self, path: str, body: dict[str, Any], extra_bytes: int = 0) -> Any:  # noqa: ANN401 - JSON
        data = await self._client.post_json(path, body, extra_bytes=extra_bytes)
        self._check(data)
        return data

    async def _get_permitted(self, path: str) -> Any:  # noqa: ANN401 - JSON
        """The answer to GET; None where the server refuses it, as it may a key for searches alone.

        Raises:
            ProviderError: The request failed for another reason.
        """
        try:
            return await self._client.get_json(path)
        except ProviderError as error:
            if error.kind != "refused":
                raise
            return None

    def _check(self, data: Any) -> None:  # noqa: ANN401 - JSON
        """Refuse an answer that states an error, or is not whole."""
        refuse_error(self._client, data)

    def _search_path(self, _leg: str) -> str:
        """Where a search is sent."""
        raise NotImplementedError

    def _select_fields(self, body: dict[str, Any], _fields: list[str]) -> dict[str, Any]:
        """A search that asks for these fields of the documents, too."""
        return body

    def _find_rows(self, data: Any) -> Sequence[Mapping[str, Any]]:  # noqa: ANN401 - JSON
        """The hits of an answer."""
        return rows_at(data, *self.rows)


class RequestHttpConnector(RequestConnector, HttpConnector):
    """A connector whose requests go to a server.

    Attributes:
        session_type: How they are asked, and their answers read.
    """

    session_type: ClassVar[type[HttpSession]]

    @asynccontextmanager
    async def connect(self) -> AsyncIterator[EngineSession]:
        """Open the connections, and ask what the answers are read by."""
        async with self.open_http() as client:
            session = self.session_type(self, client)
            await session.prepare()
            yield session


class ServerOrFolder(RequestHttpConnector):
    """An engine at a URL, or in a folder of this machine.

    Attributes:
        url: URL of the server.
        path: Folder or file that the engine's library opens instead of a server; by default it is
            asked one question at a time, so that latencies hold no waiting.
    """

    url: str = ""
    path: str | None = Field(default=None, min_length=1)

    @asynccontextmanager
    async def connect(self) -> AsyncIterator[EngineSession]:
        """Open the server or the folder, and ask what the answers are read by."""
        context = super().connect() if self.path is None else self.open_folder(self.path)
        async with context as session:
            yield session

    @abstractmethod
    def open_folder(self, path: str) -> AbstractAsyncContextManager[EngineSession]:
        """Open a folder, and close it at the end.

        Raises:
            ConfigError: It is none of the engine, or a setting does not fit it.
            MissingExtraError: The engine's library is not installed.
            ProviderError: The library refuses it.
        """

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
