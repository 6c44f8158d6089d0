"""Objects of the user's own code: Python functions, retrievers of three frameworks."""

from __future__ import annotations

import hashlib
import inspect
from abc import abstractmethod
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, TypeAlias

from pydantic import Field, JsonValue, field_validator

from fusion_bench.config.models import StrictModel
from fusion_bench.config.plugins import user_code
from fusion_bench.engines.connectors import (
    Connector,
    EngineSession,
    Hit,
    PullQuery,
    QueryForm,
    SourceName,
    SourceSettings,
    connectors,
    load_object,
)
from fusion_bench.engines.connectors._sessions import make_hits, read_rows, vector_of
from fusion_bench.errors import ConfigError
from fusion_bench.experiment.dialect import dialects
from fusion_bench.util.calls import call_function
from fusion_bench.util.json_text import malformed_error

#: The id, the score and the text of a hit; a score of None = there is none.
Row: TypeAlias = tuple[object, object, object]
#: An object of the user's, whose types nobody needs to install.
UserObject: TypeAlias = Any


class FormSource(SourceSettings):
    """A leg that states what it searches with.

    Attributes:
        form: ``text``, ``vector`` or ``sparse_vector``.
    """

    form: QueryForm = "text"

    @property
    def query_form(self) -> QueryForm:
        """Form of the query: the setting ``form``."""
        return self.form


class ObjectConnector(Connector):
    """Objects that are called, each named as ``module:attribute``.

    Attributes:
        object_field: The key that names one, and what it is called in messages.
        unscored: What is said of hits without a score.
        fused: The object that returns the fused list.
        fingerprint: ``module:function`` without arguments that returns what the lists depend on, as
            JSON; None = what the connector itself can say.
    """

    object_field: ClassVar[str]
    unscored: ClassVar[str]

    fingerprint: str | None = None
    attempts: Annotated[int, Field(ge=1, le=100)] = 1

    @asynccontextmanager
    async def connect(self) -> AsyncIterator[EngineSession]:
        """Import the objects."""
        yield ObjectSession(self)

    def describe_score(self, source: str) -> str:
        """Describe the score by its place."""
        settings: Any = self.legs[source]
        what = "the negative distance" if settings.distance else "the score"
        field = getattr(settings, "score_field", None)
        place = "" if field is None else f" at {field!r}"
        return f"{what}{place} of {getattr(settings, self.object_field)}; 1/rank {self.unscored}"

    @abstractmethod
    def load(self, place: str, name: str) -> UserObject:
        """The object of a name.

        Raises:
            ConfigError: It cannot be imported or made, or is none that can be asked.
        """

    @abstractmethod
    async def ask(
        self, user_object: UserObject, query: PullQuery, source: str, depth: int, *, texts: bool
    ) -> Iterable[Row]:
        """Ask an object; the source of the fused one has no name."""

    @abstractmethod
    def describe_objects(self, objects: Mapping[str, UserObject]) -> dict[str, JsonValue]:
        """Describe what the lists depend on, as far as the connector knows."""


class ObjectSession:
    """Objects that are imported.

    Args:
        connector: Their names.

    Raises:
        ConfigError: One cannot be used.
    """

    def __init__(self, connector: ObjectConnector) -> None:
        self._connector = connector
        self._settings: dict[str, Any] = dict(connector.legs)
        if connector.fused is not None:
            self._settings[""] = connector.fused
        self._objects = {}
        for source, settings in self._settings.items():
            place = f"legs.{source}" if source else "fused"
            name, field = getattr(settings, connector.object_field), connector.object_field
            self._objects[source] = connector.load(f"{place}.{field}", name)

    async def read_source(
        self, source: str, query: PullQuery, *, depth: int, texts: bool
    ) -> Sequence[Hit]:
        """Ask the object of a source."""
        rows = await self._connector.ask(self._objects[source], query, source, depth, texts=texts)
        return make_hits(rows, is_distance=self._settings[source].distance, texts=texts)

    async def read_fused(self, query: PullQuery, *, depth: int, texts: bool) -> Sequence[Hit]:
        """Ask the fused object."""
        if "" not in self._objects:
            raise ConfigError(f"fused: no {self._connector.object_field} is configured")
        return await self.read_source("", query, depth=depth, texts=texts)

    async def read_fingerprint(self) -> Mapping[str, JsonValue]:
        """Read the fingerprint of the connector and of the user's function."""
        connector = self._connector
        known = connector.describe_objects(self._objects)
        if connector.fingerprint is None:
            return known
        function = load_object(connector.fingerprint, "fingerprint")
        if not callable(function):
            raise ConfigError(f"fingerprint: {connector.fingerprint!r} is no function")
        given = await call_function(function)
        return {**known, **dict(given)}


class PythonFunction(StrictModel):
    """A function that searches.

    Attributes:
        function: ``module:function``, sync or async. It gets the query's text and the depth, and by
            name what it asks for of ``vector``, ``sparse_vector``, ``query_id`` and ``texts``. It
            returns ids, pairs of id and score, triples with the text, or mappings, best first.
        distance: Whether a smaller score is better; then its sign is turned.
    """

    function: Annotated[str, Field(min_length=1)]
    distance: bool = False


class PythonSource(PythonFunction, FormSource):
    """A function that searches one list."""


@connectors.register
class PythonConnector(ObjectConnector):
    """Functions of your own code.

    Attributes:
        fused: A function that returns the fused list.
        fingerprint: ``module:function`` without arguments that returns what the lists depend on, as
            JSON; None = the names of the functions and digests of their files.
    """

    source = "the user"
    object_field = "function"
    unscored = "where it returns none"

    method: str = "python"
    legs: Annotated[Mapping[SourceName, PythonSource], Field(min_length=1)]
    fused: PythonFunction | None = None

    def load(self, place: str, name: str) -> UserObject:
        """The function."""
        function = load_object(name, place)
        if not callable(function):
            raise ConfigError(f"{place}: {name!r} is no function")
        return function

    async def ask(
        self, user_object: UserObject, query: PullQuery, source: str, depth: int, *, texts: bool
    ) -> Iterable[Row]:
        """Call the function; vectors for the fused list are by the name of the source."""
        vectors, sparse = query.vectors, query.sparse_vectors
        every = {
            "vector": vectors.get(source) if source else dict(vectors),
            "sparse_vector": sparse.get(source) if source else dict(sparse),
            "query_id": query.id,
            "texts": texts,
        }
        arguments: list[str] = []  # beside the text and the depth, which come first
        with suppress(TypeError, ValueError):  # some functions written in C
            arguments = [*inspect.signature(user_object).parameters][2:]
        wanted = {name: value for name, value in every.items() if name in arguments}
        return read_rows(await call_function(user_object, query.text, depth, **wanted))

    def describe_objects(self, objects: Mapping[str, UserObject]) -> dict[str, JsonValue]:
        """The names of the functions and their files' digests; nothing where a function says it."""
        if self.fingerprint is not None:
            return {}
        digests: dict[str, JsonValue] = {}
        for source, function in objects.items():
            digest = ""  # if the file is not known
            with suppress(TypeError, OSError):
                path = inspect.getsourcefile(inspect.unwrap(function))
                if path is not None:
                    digest = hashlib.sha256(Path(path).read_bytes()).hexdigest()
            digests[f"legs.{source}.function" if source else "fused.function"] = digest
        return digests


class RetrieverObject(StrictModel):
    """A retriever of the framework.

    Attributes:
        retriever: ``module:attribute`` of the object, or of what makes it without arguments.
        id_field: Key of a document's metadata that holds its id; None = the framework's own id.
        score_field: Key of its metadata that holds its score; None = the framework's own score, and
            1/rank where there is none.
        distance: Whether a smaller score is better; then its sign is turned.
    """

    retriever: Annotated[str, Field(min_length=1)]
    id_field: Annotated[str, Field(min_length=1)] | None = None
    score_field: Annotated[str, Field(min_length=1)] | None = None
    distance: bool = False


class RetrieverSource(RetrieverObject, SourceSettings):
    """A retriever as a leg."""


class FusedRetriever(RetrieverObject):
    """A retriever that fuses the legs.

    Attributes:
        fusion: What it computes, in the terms of the framework's dialect, for a replay; None = the
            experiment that is written has no replay.
    """

    fusion: dict[str, Any] | None = None


class RetrieverConnector(ObjectConnector):
    """Retrievers of a framework.

    Attributes:
        package: The distribution of the framework, whose version is part of the fingerprint.
        methods: The methods of a retriever, the first that it has is called.
        metadata: The attribute of a document that holds its metadata.
        own: The attributes with its own id, score and text; None = it has none.
        fused: A retriever that fuses the legs.
    """

    package: ClassVar[str]
    methods: ClassVar[tuple[str, ...]]
    metadata: ClassVar[str] = "metadata"
    own: ClassVar[tuple[str, str | None, str]]
    object_field = "retriever"
    unscored = "where there is none"

    legs: Annotated[Mapping[SourceName, RetrieverSource], Field(min_length=1)]
    fused: FusedRetriever | None = None

    @field_validator("fused")
    @classmethod
    def _check_fusion(cls, value: FusedRetriever | None) -> FusedRetriever | None:
        if value is not None and value.fusion is not None:
            dialects.find_plugin(cls.dialect).build_fusion(value.fusion)
        return value

    def describe_replay(self, depth: int) -> Mapping[str, Any] | None:
        """The fusion that the user says the fused retriever computes, of the sources as pulled."""
        if self.fused is None or self.fused.fusion is None:
            return None
        depths = {name: source.depth or depth for name, source in self.legs.items()}
        window = depth if set(depths.values()) == {depth} else depths
        return {"fusion": self.fused.fusion, "depth": window, "top_k": depth}

    def load(self, place: str, name: str) -> UserObject:
        """The retriever, or what a maker of it returns."""
        methods = self.methods
        given = load_object(name, place)
        is_maker = isinstance(given, type) or not any(hasattr(given, m) for m in methods)
        if is_maker and callable(given):
            with user_code(f"{place}: {name!r}: "):
                given = given()
        if not any(hasattr(given, method) for method in methods):
            listed = " or ".join(methods)
            raise ConfigError(f"{place}: {name!r} is no retriever: it has no method {listed}")
        return given

    async def ask(
        self, user_object: UserObject, query: PullQuery, source: str, depth: int, *, texts: bool
    ) -> Iterable[Row]:
        """The documents that the retriever returns."""
        settings: Any = self.legs[source] if source else self.fused
        name = next(name for name in self.methods if hasattr(user_object, name))
        documents = await self.ask_retriever(user_object, name, query, source=source, depth=depth)
        return [self._read_document(document, settings, texts=texts) for document in documents]

    @abstractmethod
    async def ask_retriever(
        self, retriever: UserObject, method: str, query: PullQuery, *, source: str, depth: int
    ) -> UserObject:
        """The documents that a retriever returns.

        Args:
            retriever: The object.
            method: Its method that is called.
            query: The query.
            source: Name of the source; empty = the fused retriever.
            depth: How many are wanted; a retriever may have its own mind.
        """

    def _read_document(
        self, document: UserObject, settings: RetrieverObject, *, texts: bool
    ) -> Row:
        """The id, the score and the text of a document."""
        own_id, own_score, _ = self.own
        metadata = getattr(document, self.metadata, {})
        score = None if own_score is None else getattr(document, own_score, None)
        return (
            _choose_field(metadata, settings.id_field, getattr(document, own_id, None)),
            _choose_field(metadata, settings.score_field, score),
            getattr(document, self.own[2], None) if texts else None,
        )

    def describe_objects(self, objects: Mapping[str, UserObject]) -> dict[str, JsonValue]:  # noqa: ARG002 - they say nothing
        """The framework's version; None for objects that only look like the framework's."""
        try:
            return {self.package: version(self.package)}
        except PackageNotFoundError:
            return {self.package: None}


def _choose_field(metadata: object, field: str | None, default: object) -> object:
    """The value of a field of the metadata; the default where no field is configured."""
    if field is None:
        return default
    return metadata.get(field) if isinstance(metadata, Mapping) else None


class HaystackSource(RetrieverSource, FormSource):
    """A retriever component.

    Attributes:
        form: What it takes: ``query`` with the text, or ``query_embedding`` with a vector.
    """

    form: Literal["text", "vector"] = "text"


@connectors.register
class HaystackConnector(RetrieverConnector):
    """Components with ``run_async`` or ``run`` that return documents.

    They take ``top_k``, and ``query`` or ``query_embedding``.
    """

    source = "https://docs.haystack.deepset.ai/docs/retrievers"
    dialect = "haystack"
    package = "haystack-ai"
    methods = ("run_async", "run")
    metadata = "meta"
    own = ("id", "score", "content")

    method: str = "haystack"
    legs: Annotated[Mapping[SourceName, HaystackSource], Field(min_length=1)]

    async def ask_retriever(
        self, retriever: UserObject, method: str, query: PullQuery, *, source: str, depth: int
    ) -> UserObject:
        """The documents of the component's answer."""
        asked: dict[str, Any] = {"query": query.text}
        if source and self.legs[source].form == "vector":
            asked = {"query_embedding": vector_of(query, source)}
        answer = await call_function(getattr(retriever, method), **asked, top_k=depth)
        if not isinstance(answer, Mapping) or "documents" not in answer:
            raise malformed_error("the component's answer has no 'documents'")
        return answer["documents"]


@connectors.register
class LangChainConnector(RetrieverConnector):
    """Objects with ``ainvoke`` or ``invoke`` that return documents.

    A ``BaseRetriever`` is asked for ``k`` documents; where it does not take that, its own number
    counts. A document has no score but one in its metadata.
    """

    source = "https://reference.langchain.com/python/langchain_core/retrievers/"
    dialect = "langchain"
    package = "langchain-core"
    methods = ("ainvoke", "invoke")
    own = ("id", None, "page_content")

    method: str = "langchain"

    async def ask_retriever(
        self, retriever: UserObject, method: str, query: PullQuery, *, source: str, depth: int
    ) -> UserObject:
        """Its documents for the query's text."""
        del source
        if hasattr(retriever, "_expects_other_args"):  # a BaseRetriever drops what it does not take
            return await call_function(retriever.invoke, query.text, k=depth)
        return await call_function(getattr(retriever, method), query.text)


#: Value of ``id_field`` that names the document a node is of.
SOURCE_DOCUMENT = "ref_doc_id"


@connectors.register
class LlamaIndexConnector(RetrieverConnector):
    """Objects with ``aretrieve`` or ``retrieve`` that return nodes with scores.

    How many a retriever returns is its own ``similarity_top_k``. ``id_field: ref_doc_id`` names the
    document that a node is of, where each document is one node.
    """

    source = "https://developers.llamaindex.ai/python/framework-api-reference/retrievers/"
    dialect = "llamaindex"
    package = "llama-index-core"
    methods = ("aretrieve", "retrieve")
    own = ("node_id", None, "")

    method: str = "llamaindex"

    async def ask_retriever(
        self, retriever: UserObject, method: str, query: PullQuery, *, source: str, depth: int
    ) -> UserObject:
        """Its nodes for the query's text."""
        del source, depth
        return await call_function(getattr(retriever, method), query.text)

    def _read_document(
        self, document: UserObject, settings: RetrieverObject, *, texts: bool
    ) -> Row:
        """The node's id, its score, and its content."""
        node = getattr(document, "node", document)
        name, score, _ = super()._read_document(node, settings, texts=False)
        if settings.id_field == SOURCE_DOCUMENT:
            name = getattr(node, SOURCE_DOCUMENT, None)
        if settings.score_field is None:
            score = getattr(document, "score", None)
        read_content = getattr(node, "get_content", None)
        return name, score, read_content() if texts and read_content is not None else None
