"""Sessions of connectors: ask an engine, and read the hits of its answers."""

from __future__ import annotations

import asyncio
import json
import urllib.parse
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Final, TypeVar

from pydantic import Field, JsonValue, model_validator

from fusion_bench.config.models import Rank
from fusion_bench.engines.connectors import (
    Connector,
    EngineSession,
    Hit,
    HttpConnector,
    PullQuery,
    QueryForm,
    call_in_thread,
    make_hit,
)
from fusion_bench.engines.connectors._base import incomplete_error
from fusion_bench.engines.dialects.elasticsearch import QUERY, VECTOR
from fusion_bench.errors import ConfigError, FusionBenchError, ProviderError
from fusion_bench.experiment.dialect import dialects
from fusion_bench.experiment.system import System
from fusion_bench.util.digests import hash_values
from fusion_bench.util.http_client import JsonClient
from fusion_bench.util.json_text import malformed_error

#: Documents of a page where an engine lists them.
PAGE = 1_000
#: Hexadecimal digits of a digest in a fingerprint.
DIGEST_DIGITS = 32


def rows_at(data: Any, *keys: str) -> list[dict[str, Any]]:  # noqa: ANN401 - JSON
    """The list of objects under ``keys``.

    Raises:
        ProviderError: Kind ``malformed``: there is none.
    """
    data = value_at(data, *keys)
    if not isinstance(data, list) or not all(isinstance(row, dict) for row in data):
        raise malformed_error(f"it has no list of objects under {'.'.join(keys)!r}")
    return data


def value_at(data: Any, *keys: str) -> Any:  # noqa: ANN401 - JSON
    """Whatever stands under ``keys``; None if nothing does."""
    for key in keys:
        data = data.get(key) if isinstance(data, dict) else None
    return data


def number_at(data: Any, *keys: str) -> int | float | None:  # noqa: ANN401 - JSON
    """The count or the share under ``keys``; None if nothing is there.

    Raises:
        ProviderError: Kind ``malformed``: it is no number.
    """
    value = value_at(data, *keys)
    if value is None or type(value) in {int, float}:  # True is no number
        return value  # type: ignore[no-any-return]
    raise malformed_error(f"{'.'.join(keys) or 'the count'} is no number")


def digest_of(data: Any) -> str:  # noqa: ANN401 - JSON
    """A digest of a JSON value, whatever the order of its keys."""
    return hash_values(json.dumps(data, sort_keys=True))[:DIGEST_DIGITS]


def refuse_error(client: JsonClient, data: Any, *keys: str) -> None:  # noqa: ANN401 - JSON
    """Refuse an answer of status 200 that states an error, whatever else it holds.

    Args:
        client: Quotes what the server says.
        data: The answer.
        keys: Where an error stands; by default under ``error`` or ``errors``.

    Raises:
        ProviderError: Kind ``server``.
    """
    errors = value_at(data, *keys) if keys else value_at(data, "error") or value_at(data, "errors")
    if errors:
        first = errors[0] if isinstance(errors, list) else errors
        named = value_at(first, "message") or value_at(first, "reason") or first
        raise incomplete_error(f"the engine reports {client.quote_text(str(named))}")


def path_of(*parts: str) -> str:
    """The path of a URL: each part quoted."""
    return "".join(f"/{urllib.parse.quote(part, safe=',*$')}" for part in parts)


def vector_of(query: PullQuery, source: str) -> list[float]:
    """The vector that a source searches by.

    Raises:
        ConfigError: The query has none.
    """
    if source not in query.vectors:
        raise ConfigError(f"query {query.id!r} has no vector for leg {source!r}: see --vectors")
    return list(query.vectors[source])


def require_text_field(name: str | None, *, texts: bool) -> str | None:
    """The field with the text of a document where texts are wanted, else None.

    Raises:
        ConfigError: Texts are wanted, and no field is configured.
    """
    if texts and name is None:
        raise ConfigError("--texts: set text_field to the field that holds a document's text")
    return name if texts else None


def signed_score(score: object, sign: int) -> object:
    """A score, or the negative of a distance; what is no number stays, for it is refused later.

    Args:
        score: What an engine sent.
        sign: −1 where it is a distance, else 1.
    """
    is_number = isinstance(score, int | float) and not isinstance(score, bool)
    return 0.0 - score if is_number and sign < 0 else score  # type: ignore[operator]


def _field_at(fields: Any, name: str) -> Any:  # noqa: ANN401 - JSON
    """The field of a document, also where a name with dots is nested; None if there is none."""
    value = value_at(fields, name)
    return value if value is not None else value_at(fields, *name.split("."))


#: Keys of a hit that is a mapping, in the order in which they are looked for.
ID_KEYS = ("id", "_id", "document", "doc_id", "document_id")
SCORE_KEYS = ("score", "_score", "similarity", "distance")
TEXT_KEYS = ("text", "content", "page_content")


def read_rows(items: Any) -> list[tuple[object, object, object]]:  # noqa: ANN401 - the user's own
    """Id, score and text each, from ids, pairs, triples with the text, mappings, or hits.

    Args:
        items: Best first.

    Raises:
        ProviderError: Kind ``malformed``: it is nothing of that kind.
    """
    if isinstance(items, str | bytes | Mapping) or not isinstance(items, Iterable):
        raise malformed_error(f"a list of hits is needed, given {type(items).__name__}")
    rows: list[tuple[object, object, object]] = []
    for item in items:
        if isinstance(item, Hit):
            rows.append((item.document, item.score, item.text))
        elif isinstance(item, Mapping):
            document, score, text = (
                next((item[key] for key in keys if item.get(key) is not None), None)
                for keys in (ID_KEYS, SCORE_KEYS, TEXT_KEYS)
            )
            rows.append((document, score, text))
        elif isinstance(item, tuple | list):
            if not 1 <= len(item) <= 3:
                raise malformed_error(
                    f"a hit of {len(item)} values: id, score and text are allowed"
                )
            rows.append((*item, None, None)[:3])
        else:
            rows.append((_to_plain(item), None, None))
    return rows


def make_hits(
    rows: Iterable[tuple[object, object, object]], *, is_distance: bool, texts: bool
) -> list[Hit]:
    """Hits from id, score and text each; None for all scores = 1/rank, only the order counts.

    Args:
        rows: Best first.
        is_distance: Whether a smaller score is better; then its sign is turned.
        texts: Whether texts are wanted.

    Raises:
        ProviderError: Kind ``malformed``: a value breaks a rule, or only some have a score.
    """
    known = list(rows)
    unscored = sum(score is None for _, score, _ in known)
    if unscored not in {0, len(known)}:
        raise malformed_error(f"{unscored} of {len(known)} hits have no score: all or none")
    sign = -1 if is_distance else 1
    return [
        make_hit(
            document,
            1 / rank if score is None else signed_score(_to_plain(score), sign),
            text if texts else None,
        )
        for rank, (document, score, text) in enumerate(known, start=1)
    ]


def _to_plain(value: object) -> object:
    """A number of NumPy as one of Python."""
    return value.item() if hasattr(value, "item") else value


#: The name of the system that an engine's own fusion is.
FUSED = "fused"
#: Most documents of a list where an engine states no limit.
MOST_DOCUMENTS = 10_000


class FusedByDialect(Connector):
    """A connector whose ``fused`` is a fusion of its engine's dialect, over all legs.

    Attributes:
        limit_name: What limits the depth of a list, for messages.
        limit_advice: What to do about it.
        window_advice: How the engine fuses fewer documents of a leg, for messages.
        has_window_by_leg: Whether the engine fuses a number of documents that differs by leg.
        fused: A fusion as an experiment of this dialect has it; None = no fused answer is pulled.
        window: How many documents of each leg the engine fuses; None = the depth of the pull.
        most_documents: The longest list that the engine returns.
    """

    limit_name: ClassVar[str] = "the engine"
    limit_advice: ClassVar[str] = "ask for fewer, or raise it there and set most_documents"
    has_window_by_source: ClassVar[bool] = False
    window_advice: ClassVar[str] = "set a smaller window"

    fused: dict[str, Any] | None = None
    window: Rank | None = Field(default=None)
    most_documents: Rank = MOST_DOCUMENTS

    @model_validator(mode="after")
    def _check_fused(self) -> FusedByDialect:
        if self.fused is not None:
            try:
                system = self.fused_system(1)
            except ConfigError as error:
                text = str(error)
                prefix = "" if text.startswith(f"{FUSED}.") else f"{FUSED}."
                raise ValueError(f"{prefix}{text}") from None
            translation = dialects.find_plugin(self.dialect).translate(system, self._source_roles())
            if translation.system is None:
                raise ValueError(f"{FUSED}.{translation.reasons[0]} (runs are legs)")
        return self

    def fused_system(self, depth: int) -> System:
        """The engine's own fusion of the sources as a system.

        Args:
            depth: How many fused documents are wanted.

        Raises:
            ConfigError: The fusion is none of the dialect, or does not fit the sources.
        """
        windows = {name: self.window_of(name, depth) for name in self.legs}
        is_common = len({*windows.values()}) == 1
        system = System(
            FUSED,
            [*windows],
            dialect=self.dialect,
            fusion=self.fused_options(),
            depth=next(iter(windows.values())) if is_common else windows,
            top_k=depth,
        )
        fusion, roles = system.fusion, self._source_roles()
        weights = fusion.source_weights([*roles], [*roles.values()]).tolist()
        if not getattr(fusion, "weights", None):
            return system
        by_source = dict(zip(roles, weights, strict=True))
        for source, weight in by_source.items():
            if weight == 0:
                raise ConfigError(
                    f"weights: 0 for leg {source!r}: the engine would return its documents all the "
                    "same, and a replay would not: remove the leg, or give it a weight"
                )
        fusion = fusion.model_copy(update={"weights": by_source})
        return system.model_copy(update={"fusion": fusion})

    def fused_options(self) -> dict[str, Any]:
        """The fusion as the system has it: by default as it is configured."""
        return dict(self.fused or {})

    def describe_replay(self, depth: int) -> Mapping[str, Any] | None:
        """The fusion, with the windows and the limit of the request."""
        if self.fused is None:
            return None
        system = self.fused_system(depth)
        translation = dialects.find_plugin(self.dialect).translate(system, self._source_roles())
        asked = translation.system or system
        fusion = system.fusion.model_dump(mode="json")
        return {"fusion": fusion, "depth": asked.depth, "top_k": asked.top_k}

    def check_depth(self, source: str, depth: int) -> None:
        """Refuse what the engine does not return, and sources shorter than it fuses them."""
        if depth > self.most_documents:
            place = f"legs.{source}" if source else FUSED
            raise ConfigError(
                f"{place}: depth {depth:,} is more than the {self.most_documents:,} documents that "
                f"{self.limit_name} allows: {self.limit_advice}"
            )
        if source or self.fused is None:
            return
        for name, settings in self.legs.items():
            length, window = settings.depth or depth, self.window_of(name, depth)
            lengths = (
                f"legs.{name}: the engine fuses {window:,} documents of each leg, and {length:,} "
                "of this one are pulled"
            )
            if length < window:
                raise ConfigError(f"{lengths}: pull {window:,}, or {self.window_advice}")
            if length > window and self.window is None:
                raise ConfigError(f"{lengths}: set window: {window} too, or remove depth")

    def window_of(self, source: str, depth: int) -> int:
        """Number of a source's documents that the engine fuses, for so many fused ones."""
        if not self.has_window_by_source:
            return self.window or depth
        length = self.legs[source].depth or depth
        return min(length, self.window or length)

    def _source_roles(self) -> dict[str, frozenset[str]]:
        return {name: frozenset(source.roles) for name, source in self.legs.items()}


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


def json_sparse(query: PullQuery, source: str) -> dict[str, list[Any]]:
    """The sparse vector that a source searches by, as ``indices`` and ``values``.

    Raises:
        ConfigError: The query has none.
    """
    if source not in query.sparse_vectors:
        raise ConfigError(
            f"query {query.id!r} has no sparse vector for leg {source!r}: see --vectors"
        )
    weights = sorted(query.sparse_vectors[source].items())
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

    async def read_source(
        self, source: str, query: PullQuery, *, depth: int, texts: bool
    ) -> Sequence[Hit]:
        """One search with the source's query alone."""
        body = self._connector.source_request(source, query, depth)
        return await self._search(body, source, depth, texts=texts)

    async def read_fused(self, query: PullQuery, *, depth: int, texts: bool) -> Sequence[Hit]:
        """One search that the engine fuses."""
        body = self._connector.fused_request(query, depth)
        return await self._search(body, "", depth, texts=texts)

    @abstractmethod
    async def _search(
        self, body: dict[str, Any], source: str, depth: int, *, texts: bool
    ) -> Sequence[Hit]:
        """The hits of the answer to a request; the source of the fused one has no name."""

    @abstractmethod
    async def read_fingerprint(self) -> Mapping[str, JsonValue]:
        """Read what the lists depend on besides the settings."""

    def _make_hits(
        self, rows: Iterable[Mapping[str, Any]], source: str, *, texts: bool
    ) -> list[Hit]:
        """The hits of the rows of an answer.

        Raises:
            ProviderError: Kind ``malformed``: a value breaks a rule.
        """
        return [
            make_hit(document, self._read_score(row, source), text)
            for row in rows
            for document, text in [self._read_document(row, texts=texts)]
        ]

    def _list_documents(self, rows: Iterable[Mapping[str, Any]]) -> list[Hit]:
        """The documents of rows that no search found, with their texts; as for a hit."""
        read = (self._read_document(row, texts=True) for row in rows)
        return [make_hit(document, 0.0, text) for document, text in read]

    def _read_document(self, row: Mapping[str, Any], *, texts: bool) -> tuple[object, object]:
        id_field, text_field = self._connector.id_field, self._connector.text_field
        known = value_at(row, *self.fields)
        document = self._read_id(row) if id_field is None else _field_at(known, id_field)
        return document, _field_at(known, text_field) if texts and text_field else None

    def _read_id(self, row: Mapping[str, Any]) -> object:
        return value_at(row, *self.own_id)

    def _read_score(self, row: Mapping[str, Any], source: str) -> object:
        return signed_score(value_at(row, *self.score), self.signs.get(source, 1))


class DocumentFields(Connector):
    """A connector whose documents have named fields.

    Attributes:
        id_field: The field that holds a document's id; None = the engine's own id.
        text_field: The field that holds its text.
    """

    id_field: str | None = None
    text_field: str | None = None


class TableFields(DocumentFields):
    """A connector of a table.

    Attributes:
        id_field: The column that holds a document's id.
        text_field: The column that holds its text.
    """

    id_field: Annotated[str, Field(min_length=1)] = "id"
    text_field: Annotated[str, Field(min_length=1)] | None = None


class RequestConnector(Connector):
    """A connector that writes the requests of its sessions.

    Attributes:
        id_field: As :class:`DocumentFields` has it, where the documents have named fields.
        text_field: The same.
    """

    if TYPE_CHECKING:
        id_field: str | None
        text_field: str | None

    @abstractmethod
    def source_request(self, source: str, query: PullQuery, depth: int) -> dict[str, Any]:
        """The search of one source."""

    @abstractmethod
    def fused_request(self, query: PullQuery, depth: int) -> dict[str, Any]:
        """The fused search, as the export writes it, with this query in it."""

    def read_fields(self, *, texts: bool) -> list[str]:
        """The fields of a document that are read: that of its id, and of its text."""
        fields = (self.id_field, require_text_field(self.text_field, texts=texts))
        return [name for name in fields if name is not None]


class LibrarySession(Session):
    """A database that its library opens.

    Args:
        connector: Its settings.

    Attributes:
        title: Its name, for errors.
    """

    title: ClassVar[str]

    async def read_fingerprint(self) -> Mapping[str, JsonValue]:
        """Read the library's description of the database."""
        return await self._call(self._describe)

    @abstractmethod
    def _describe(self) -> Mapping[str, JsonValue]:
        """The version, the count of documents, a digest of their configuration."""

    async def _call(self, question: Callable[[], T]) -> T:
        return await call_library(self.title, question, self._connector.timeout)


class LockedSession(LibrarySession):
    """One whose library does not promise that calls may run at the same time.

    Args:
        connector: Its settings.
    """

    def __init__(self, connector: RequestConnector) -> None:
        super().__init__(connector)
        self._lock = asyncio.Lock()

    async def _call(self, question: Callable[[], T]) -> T:
        async with self._lock:
            return await super()._call(question)


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
        self, body: dict[str, Any], source: str, depth: int, *, texts: bool
    ) -> Sequence[Hit]:
        selected = self._select_fields(body, self._connector.read_fields(texts=texts))
        extra = self._connector.answer_bytes(depth, texts=texts)
        data = await self._post(self._search_path(source), selected, extra)
        return self._make_hits(self._find_rows(data), source, texts=texts)

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

    def _search_path(self, _source: str) -> str:
        """Path to which a search is sent."""
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


class ServerOrFolder(FusedByDialect, RequestHttpConnector):
    """An engine at a URL, or in a folder of this machine.

    Attributes:
        url: URL of the server.
        collection: Name of the collection.
        path: Folder or file that the engine's library opens instead of a server; by default it is
            asked one question at a time, so that latencies hold no waiting.
    """

    has_window_by_source = True

    url: str = ""
    path: str | None = Field(default=None, min_length=1)
    collection: str

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


def fill_template(template: Any, query: PullQuery, source: str, depth: int) -> Any:  # noqa: ANN401 - JSON
    """A template with the query in it.

    A text that is nothing but a placeholder is replaced: ``QUERY`` by the query's text,
    ``QUERY_VECTOR`` by the numbers of its vector, ``DEPTH`` by the number of documents. So no
    query can change the structure of a request.

    Args:
        template: A JSON value.
        query: The query.
        source: Whose vector is meant.
        depth: How many documents are asked for.
    """
    if isinstance(template, Mapping):
        return {key: fill_template(value, query, source, depth) for key, value in template.items()}
    if isinstance(template, list | tuple):
        return [fill_template(value, query, source, depth) for value in template]
    if template == QUERY:
        return query.text
    if template == VECTOR:
        return vector_of(query, source)
    return depth if template == DEPTH else template


def template_form(template: Any) -> QueryForm:  # noqa: ANN401 - JSON
    """Form of the query that a template asks for."""
    if isinstance(template, Mapping):
        template = [*template.values()]
    if isinstance(template, list | tuple):
        forms = {template_form(value) for value in template}
        return "vector" if "vector" in forms else "text"
    return "vector" if template == VECTOR else "text"
