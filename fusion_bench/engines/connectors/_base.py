"""Base classes of connectors: a search engine as a configuration, its sources, hits, sessions."""

from __future__ import annotations

import json
import math
import unicodedata
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import (
    Annotated,
    Any,
    ClassVar,
    Final,
    Literal,
    Protocol,
    TypeAlias,
    TypedDict,
    get_args,
)

from pydantic import ConfigDict, Field, JsonValue
from pydantic_core import PydanticUndefined

from fusion_bench.config.models import MOST_WORKERS, Rank, StrictModel, UniqueNames, parse_model
from fusion_bench.config.plugins import find_module, user_code
from fusion_bench.config.registry import Method, MethodRegistry
from fusion_bench.errors import ConfigError, ProviderError
from fusion_bench.models.endpoints import HttpServerModel
from fusion_bench.util.api_keys import hidden_reason
from fusion_bench.util.http_client import BEARER, JsonClient, KeyHeader, open_client
from fusion_bench.util.json_text import malformed_error

#: Characters of a document's id, and of its text.
LONGEST_ID: Final = 1_000
LONGEST_TEXT: Final = 1_000_000
#: Categories of characters that no id may hold: control codes, halves of surrogate pairs, ends of
#: lines.
REFUSED_CATEGORIES: Final = frozenset({"Cc", "Cs", "Zl", "Zp"})


@dataclass(frozen=True, slots=True)
class Hit:
    """One document of a list.

    Attributes:
        document: Its id.
        score: Greater is better: a distance has its sign turned.
        text: Its text; None = not asked for, or the engine has none.
    """

    document: str
    score: float
    text: str | None = None


def has_control(text: str) -> bool:
    """Whether a text holds a control character, half of a surrogate pair, or an end of line."""
    return not text.isprintable() and any(
        unicodedata.category(character) in REFUSED_CATEGORIES for character in text
    )


def make_hit(document: object, score: object, text: object = None) -> Hit:
    """A hit from values that an engine sent.

    Args:
        document: Its id: text, or a whole number.
        score: A finite number.
        text: Text or None.

    Raises:
        ProviderError: Kind ``malformed``: a value is of another kind, cannot be stored, or shows
            the API key: without it, it would be another document.
    """
    for what, value in (("id", document), ("text", text)):
        if (reason := hidden_reason(value)) is not None:
            raise malformed_error(f"the {what} of a hit: {reason}")
    if isinstance(document, int) and not isinstance(document, bool):
        document = str(document)
    if not isinstance(document, str) or not document.strip():
        raise malformed_error("a hit without an id")
    if len(document) > LONGEST_ID:
        raise malformed_error(f"an id has more than {LONGEST_ID:,} characters")
    if has_control(document):
        raise malformed_error(f"the id {document[:80]!r} holds a control character")
    try:
        number = math.nan if isinstance(score, bool | str | bytes) else float(score)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not math.isfinite(number):
        raise malformed_error(f"the score of {document[:80]!r} is no finite number")
    return Hit(document, number + 0.0, _to_text(document, text))  # + 0.0: of −0 and 0 one


def _to_text(document: str, text: object) -> str | None:
    if text is None:
        return None
    if not isinstance(text, str):
        raise malformed_error(f"the text of {document[:80]!r} is no text")
    if len(text) > LONGEST_TEXT:
        raise malformed_error(
            f"the text of {document[:80]!r} has more than {LONGEST_TEXT:,} characters"
        )
    return text.encode(errors="replace").decode()  # without halves of surrogate pairs


def check_hits(hits: object, depth: int) -> tuple[Hit, ...]:
    """The first ``depth`` hits of an answer, each with values that can be stored.

    Args:
        hits: A sequence of hits, best first, as the engine ordered them.
        depth: How many were asked for.

    Raises:
        ProviderError: Kind ``malformed``: it is no list of hits, a value breaks a rule of
            :func:`make_hit`, or a document appears twice.
    """
    if isinstance(hits, str | bytes) or not isinstance(hits, Sequence):
        raise malformed_error("no list of hits")
    checked: dict[str, Hit] = {}
    for hit in hits[:depth]:
        if not isinstance(hit, Hit):
            raise malformed_error(f"a {type(hit).__name__} in place of a hit")
        known = make_hit(hit.document, hit.score, hit.text)
        if known.document in checked:
            raise malformed_error(f"document {known.document[:80]!r} appears twice")
        checked[known.document] = known
    return tuple(checked.values())


def incomplete_error(problem: str) -> ProviderError:
    """The error of an answer to which a part of the index gave nothing: it may be asked again."""
    return ProviderError(f"incomplete answer: {problem}", kind="server")


@dataclass(frozen=True)
class PullQuery:
    """One query as the sources search for it.

    Attributes:
        id: Its id.
        text: What is asked.
        vectors: Name of a source → the vector of the query, where the source searches by one.
        sparse_vectors: Name of a source → the query's weight of each dimension, where the source
            searches by a sparse vector.
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

    async def read_source(
        self, source: str, query: PullQuery, *, depth: int, texts: bool
    ) -> Sequence[Hit]:
        """The list of one source alone, best first, as the engine orders it.

        Args:
            source: Name of the source.
            query: The query.
            depth: Most hits.
            texts: Whether the texts of the documents are wanted.

        Raises:
            ProviderError: The call failed, or the answer is malformed or incomplete; the kind
                decides whether it is repeated.
        """
        ...

    async def read_fused(self, query: PullQuery, *, depth: int, texts: bool) -> Sequence[Hit]:
        """The engine's own fused answer over all sources; arguments as for :meth:`read_source`."""
        ...

    async def read_fingerprint(self) -> Mapping[str, JsonValue]:
        """Read what the lists depend on besides the settings.

        Such as the engine's version, the name of the index, ``documents`` (how many there are), a
        digest of its mapping. Two calls give the same values while nothing changes.
        """
        ...


class ListingSession(EngineSession, Protocol):
    """A connected engine that can list its documents."""

    async def read_documents(self, place: JsonValue) -> tuple[Sequence[Hit], JsonValue]:
        """Some documents with their texts, and the place of the next ones; None = these are all.

        Args:
            place: What the call before returned; None at the start.

        Raises:
            ConfigError: No field is configured that holds a document's text.
            ProviderError: As for :meth:`read_source`.
        """
        ...


#: What a source searches with.
QueryForm: TypeAlias = Literal["text", "vector", "sparse_vector"]
#: A source's name is that of its run: of a file, and of a source of a system.
SOURCE_NAME: Final = r"^[A-Za-z0-9][A-Za-z0-9._+-]*$"
SourceName: TypeAlias = Annotated[str, Field(pattern=SOURCE_NAME, max_length=100)]


class SourceSettings(StrictModel):
    """One leg of a hybrid query: one way to search, whose list is pulled alone.

    An engine's own legs derive from this and add what the engine needs: a field, a vector field, a
    template of the query.

    Attributes:
        roles: Roles of the run, such as ``keyword`` or ``semantic``.
        depth: Most documents per query; None = the depth of the pull.
        vectors: Where the vectors of the queries come from: a file (``.npz`` or JSON Lines), or
            ``module:function``; None = from ``--vectors``, or from ``encoder``.
        encoder: An encoder that makes them: its name, or a mapping with ``method``.
    """

    # Whoever loads an engine for its formulas alone does not wait for these schemas.
    model_config = ConfigDict(defer_build=True)

    roles: UniqueNames = ()
    depth: Rank | None = None
    vectors: Annotated[str, Field(min_length=1)] | None = None
    encoder: str | dict[str, Any] | None = None

    @property
    def query_form(self) -> QueryForm:
        """Form of the query that the source searches with: ``text`` unless overridden."""
        return "text"


class SearchSource(SourceSettings):
    """A leg that states what it searches with.

    Attributes:
        search: What is sent of a query; an engine's legs allow what it takes.
    """

    search: QueryForm

    @property
    def query_form(self) -> QueryForm:
        """Form of the query: the setting ``search``."""
        return self.search


class Connector(Method, ABC):
    """One search engine from which lists are pulled, as a configuration.

    Subclasses have their own legs, ``legs: Mapping[str, EngineSource]``, and where the engine fuses
    itself, ``fused`` is that fusion in the terms of its dialect; they are decorated with
    ``@connectors.register``.

    Attributes:
        method: Its name.
        source: Where its API is described.
        dialect: Name of the dialect that replays ``fused``; empty = none does.
        legs: The legs by name.
        fused: The engine's own fusion; None = its fused answer is not pulled.
        timeout: Seconds for a whole call.
        concurrency: Most calls at once.
        requests_per_minute: Most calls per minute, evenly spaced; None = no limit.
        attempts: Most calls for one list, where the engine is busy or down.
        wait: Seconds before the second of them; each further wait doubles, up to a minute.
        operational: Fields that no list depends on.
        scores: What the scores of every leg are.
        lists_documents: Whether its sessions are :class:`ListingSession`.
    """

    operational: ClassVar[frozenset[str]] = frozenset(
        {"timeout", "concurrency", "requests_per_minute", "attempts", "wait", "key"}
    )
    model_config = ConfigDict(defer_build=True)

    source: ClassVar[str]
    dialect: ClassVar[str] = ""
    scores: ClassVar[str] = "the engine's own score"
    lists_documents: ClassVar[bool] = False

    method: str
    legs: Annotated[Mapping[SourceName, SourceSettings], Field(min_length=1)]
    fused: Any = None
    timeout: Annotated[float, Field(gt=0, le=3600)] = 60.0
    concurrency: Annotated[int, Field(ge=1, le=MOST_WORKERS)] = 4
    requests_per_minute: Annotated[float, Field(gt=0)] | None = None
    attempts: Annotated[int, Field(ge=1, le=100)] = 5
    wait: Annotated[float, Field(ge=0, le=60)] = 1.0

    @abstractmethod
    def connect(self) -> AbstractAsyncContextManager[EngineSession]:
        """Connect; leaving the context releases everything.

        Raises:
            ConfigError: A key is missing, or a setting does not fit the engine.
            MissingExtraError: A library is missing.
            ProviderError: The engine does not answer.
        """

    def describe_score(self, _source: str, /) -> str:
        """Describe the scores of a source for the provenance, such as ``BM25``."""
        return self.scores

    def describe_replay(self, depth: int) -> Mapping[str, Any] | None:  # noqa: ARG002 - of some engines
        """Keys of a system, without ``dialect`` and ``runs``, replaying ``fused`` on the sources.

        None = nothing does. By default the fusion as it is configured.

        Args:
            depth: Of the pull: most hits of the fused answer, and of sources without a depth.
        """
        if self.fused is None or not self.dialect:
            return None
        fusion = self.fused
        data = fusion.model_dump(mode="json") if isinstance(fusion, StrictModel) else fusion
        return {"fusion": data}

    def check_depth(self, source: str, depth: int) -> None:
        """Refuse, before anything is asked, a depth that the engine cannot return.

        Args:
            source: Name of the source; empty = the fused answer.
            depth: Most documents per query.

        Raises:
            ConfigError: It is too great.
        """


connectors: MethodRegistry[Connector] = MethodRegistry(
    "search engine",
    "fusion_bench.engines.connectors",
    "fusion_bench.connectors",
    Connector,
    listed_by="fusion-bench methods",
)
connectors.first = ("elasticsearch", "opensearch", "qdrant", "weaviate", "milvus", "pgvector")


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

    operational = Connector.operational | {"allow_http"}
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
        """Bytes that an answer may have beyond 2 MB: ``extra_bytes`` of a request."""
        return depth * (HIT_BYTES + (TEXT_BYTES if texts else 0))


def load_object(name: str, key: str) -> Any:  # noqa: ANN401 - whatever the user names
    """The object that ``module:attribute`` names; ``module:a.b`` is the attribute of an attribute.

    The module is one that :func:`~fusion_bench.config.plugins.find_module` finds.

    Args:
        name: What was given.
        key: The setting that holds it, for messages.

    Raises:
        ConfigError: There is no such module or attribute, or importing it failed.
    """
    module, colon, path = name.partition(":")
    if not colon or not path or not all(part.isidentifier() for part in module.split(".")):
        raise ConfigError(f"{key}: {name!r} is not of the form module:attribute")
    try:
        with user_code(f"{name!r} cannot be loaded: "):
            target: Any = find_module(module)[0]
            for part in path.split("."):
                target = getattr(target, part)
    except ConfigError as error:
        raise ConfigError(f"{key}: {error}") from None
    return target


def build_connector(engine: str, settings: Mapping[str, Any]) -> Connector:
    """The connector of an engine with keys as Python has them.

    Raises:
        UnknownNameError: There is no such engine; lists the known ones.
        ConfigError: A key is missing or unknown, or a value breaks a rule; says where.
    """
    model = connectors.find_plugin(engine)
    data = {"method": engine, **settings}
    return parse_model(model, data, engine)


class ConnectorEntry(TypedDict):
    """One engine.

    Attributes:
        engine: Its name.
        source: Where its interface is described.
        keys: Default of each key of its own as JSON, ``required`` where it has none.
        leg: The same for the keys of a leg.
        fuses: Whether its own fused answer can be pulled.
    """

    engine: str
    source: str
    keys: dict[str, str]
    leg: dict[str, str]
    fuses: bool


def list_connectors() -> list[ConnectorEntry]:
    """List the engines, popular ones first, with the keys that not every engine has."""
    return [
        ConnectorEntry(
            engine=name,
            source=model.source,
            keys=_list_defaults(model, Connector),
            leg=_list_defaults(get_args(model.model_fields["legs"].annotation)[1], SourceSettings),
            fuses=model.model_fields["fused"].annotation is not type(None),
        )
        for name in connectors.list_names()
        for model in [connectors.find_plugin(name)]
    ]


def list_shared_keys() -> tuple[dict[str, str], dict[str, str]]:
    """Default of each key that every engine has, and of each key that every source has."""
    return _list_defaults(Connector, None), _list_defaults(SourceSettings, None)


def _list_defaults(model: type[StrictModel], base: type[StrictModel] | None) -> dict[str, str]:
    """Defaults of the fields that a base does not have."""
    defaults = {}
    for key, info in model.model_fields.items():
        if key == "method" or (base is not None and key in base.model_fields):
            continue
        value = info.get_default(call_default_factory=True)
        value = value.model_dump(mode="json") if isinstance(value, StrictModel) else value
        defaults[key] = "required" if value is PydanticUndefined else json.dumps(value)
    return defaults
