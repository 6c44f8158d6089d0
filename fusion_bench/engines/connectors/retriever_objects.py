"""Retriever objects that the user's code makes: Haystack, LangChain, LlamaIndex."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from importlib.metadata import PackageNotFoundError, version
from typing import Annotated, Any, ClassVar, Literal, TypeAlias

from pydantic import Field, JsonValue, field_validator

from fusion_bench.config.models import StrictModel
from fusion_bench.engines.connectors import (
    Connector,
    EngineSession,
    Hit,
    LegName,
    LegSettings,
    PullQuery,
    QueryForm,
    connectors,
    load_object,
)
from fusion_bench.engines.connectors._answers import make_hits, vector_of
from fusion_bench.errors import ConfigError
from fusion_bench.experiment.dialect import dialects
from fusion_bench.util.calls import call_function
from fusion_bench.util.json_text import malformed_error

#: The id, the score and the text of a hit; a score of None = there is none.
Row: TypeAlias = tuple[object, object, object]
#: An object of a framework, whose types nobody needs to install.
FrameworkObject: TypeAlias = Any


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


class RetrieverLeg(RetrieverObject, LegSettings):
    """A retriever as a leg."""


class FusedRetriever(RetrieverObject):
    """A retriever that fuses the legs.

    Attributes:
        fusion: What it computes, in the terms of the framework's dialect, for a replay; None = the
            experiment that is written has no replay.
    """

    fusion: dict[str, Any] | None = None


class RetrieverConnector(Connector):
    """Retrievers of a framework.

    Attributes:
        package: The distribution of the framework, whose version is part of the fingerprint.
        methods: The methods of a retriever, the first that it has is called.
        fused: A retriever that fuses the legs.
        fingerprint: ``module:function`` without arguments that returns what the lists depend on, as
            JSON; None = nothing tells one state of the index from another.
    """

    package: ClassVar[str]
    methods: ClassVar[tuple[str, ...]]

    legs: Annotated[Mapping[LegName, RetrieverLeg], Field(min_length=1)]
    fused: FusedRetriever | None = None
    fingerprint: str | None = None
    attempts: Annotated[int, Field(ge=1, le=100)] = 1

    @field_validator("fused")
    @classmethod
    def _check_fusion(cls, value: FusedRetriever | None) -> FusedRetriever | None:
        if value is not None and value.fusion is not None:
            dialects.find_plugin(cls.dialect).build_fusion(value.fusion)
        return value

    def describe_replay(self, depth: int) -> Mapping[str, Any] | None:
        """The fusion that the user says the fused retriever computes, of the legs as pulled."""
        if self.fused is None or self.fused.fusion is None:
            return None
        depths = {name: leg.depth or depth for name, leg in self.legs.items()}
        window = depth if set(depths.values()) == {depth} else depths
        return {"fusion": self.fused.fusion, "depth": window, "top_k": depth}

    def describe_score(self, leg: str) -> str:
        """Where it stands."""
        settings = self.legs[leg]
        what = "the negative distance" if settings.distance else "the score"
        place = "" if settings.score_field is None else f" at {settings.score_field!r}"
        return f"{what}{place} of {settings.retriever}; 1/rank where there is none"

    @asynccontextmanager
    async def connect(self) -> AsyncIterator[EngineSession]:
        """Import the retrievers."""
        yield RetrieverSession(self)

    @abstractmethod
    async def ask_retriever(
        self,
        retriever: FrameworkObject,
        query: PullQuery,
        leg: str,
        depth: int,
    ) -> FrameworkObject:
        """The documents that a retriever returns.

        Args:
            retriever: The object.
            query: The query.
            leg: Name of the leg; empty = the fused retriever.
            depth: How many are wanted; a retriever may have its own mind.
        """

    @abstractmethod
    def read_document(self, document: FrameworkObject, settings: RetrieverObject) -> Row:
        """The id, the score and the text of a document."""


class RetrieverSession:
    """Retrievers that are imported.

    Args:
        connector: Their names.

    Raises:
        ConfigError: One cannot be imported or made, or has no method to call.
    """

    def __init__(self, connector: RetrieverConnector) -> None:
        self._connector = connector
        self._objects = {
            name: self._load(f"legs.{name}.retriever", leg.retriever)
            for name, leg in connector.legs.items()
        }
        if connector.fused is not None:
            self._objects[""] = self._load("fused.retriever", connector.fused.retriever)

    def _load(self, place: str, name: str) -> FrameworkObject:
        methods = self._connector.methods
        given = load_object(name, place)
        is_maker = isinstance(given, type) or not any(hasattr(given, m) for m in methods)
        if is_maker and callable(given):
            try:
                given = given()
            except Exception as error:  # noqa: BLE001 - user code may raise anything
                raise ConfigError(f"{place}: {name!r}: {type(error).__name__}: {error}") from None
        if not any(hasattr(given, method) for method in methods):
            listed = " or ".join(methods)
            raise ConfigError(f"{place}: {name!r} is no retriever: it has no method {listed}")
        return given

    async def read_leg(
        self, leg: str, query: PullQuery, *, depth: int, texts: bool
    ) -> Sequence[Hit]:
        """What the retriever of the leg returns."""
        return await self._ask(leg, self._connector.legs[leg], query, depth, texts=texts)

    async def read_fused(self, query: PullQuery, *, depth: int, texts: bool) -> Sequence[Hit]:
        """What the fused retriever returns."""
        if self._connector.fused is None:
            raise ConfigError("fused: no retriever is configured")
        return await self._ask("", self._connector.fused, query, depth, texts=texts)

    async def _ask(
        self, leg: str, settings: RetrieverObject, query: PullQuery, depth: int, *, texts: bool
    ) -> Sequence[Hit]:
        documents = await self._connector.ask_retriever(self._objects[leg], query, leg, depth)
        rows = [self._connector.read_document(document, settings) for document in documents]
        return make_hits(rows, is_distance=settings.distance, texts=texts)

    async def read_fingerprint(self) -> Mapping[str, JsonValue]:
        """The framework's version, and what the user's function says."""
        package = self._connector.package
        try:
            known: dict[str, JsonValue] = {package: version(package)}
        except PackageNotFoundError:  # objects that only look like the framework's
            known = {package: None}
        if self._connector.fingerprint is None:
            return known
        given = await call_function(load_object(self._connector.fingerprint, "fingerprint"))
        return {**known, **dict(given)}


def choose_field(metadata: object, field: str | None, default: object) -> object:
    """The value of a field of the metadata; the default where no field is configured."""
    if field is None:
        return default
    return metadata.get(field) if isinstance(metadata, Mapping) else None


class HaystackLeg(RetrieverLeg):
    """A retriever component.

    Attributes:
        form: What it takes: ``query`` with the text, or ``query_embedding`` with a vector.
    """

    form: Literal["text", "vector"] = "text"

    @property
    def query_form(self) -> QueryForm:
        """As it is configured."""
        return self.form


@connectors.register
class HaystackConnector(RetrieverConnector):
    """Components with ``run_async`` or ``run`` that return documents.

    They take ``top_k``, and ``query`` or ``query_embedding``.
    """

    source: ClassVar[str] = "https://docs.haystack.deepset.ai/docs/retrievers"
    dialect: ClassVar[str] = "haystack"
    package: ClassVar[str] = "haystack-ai"
    methods: ClassVar[tuple[str, ...]] = ("run_async", "run")

    method: str = "haystack"
    legs: Annotated[Mapping[LegName, HaystackLeg], Field(min_length=1)]

    async def ask_retriever(
        self,
        retriever: FrameworkObject,
        query: PullQuery,
        leg: str,
        depth: int,
    ) -> FrameworkObject:
        """The documents of the component's answer."""
        asked: dict[str, Any] = {"query": query.text}
        if leg and self.legs[leg].form == "vector":
            asked = {"query_embedding": vector_of(query, leg)}
        name = next(name for name in self.methods if hasattr(retriever, name))
        answer = await call_function(getattr(retriever, name), **asked, top_k=depth)
        if not isinstance(answer, Mapping) or "documents" not in answer:
            raise malformed_error("the component's answer has no 'documents'")
        return answer["documents"]

    def read_document(self, document: FrameworkObject, settings: RetrieverObject) -> Row:
        """``id``, ``score``, ``content``."""
        metadata = getattr(document, "meta", {})
        name = choose_field(metadata, settings.id_field, getattr(document, "id", None))
        score = choose_field(metadata, settings.score_field, getattr(document, "score", None))
        return name, score, getattr(document, "content", None)


@connectors.register
class LangChainConnector(RetrieverConnector):
    """Objects with ``ainvoke`` or ``invoke`` that return documents.

    A ``BaseRetriever`` is asked for ``k`` documents; where it does not take that, its own number
    counts. A document has no score but one in its metadata.
    """

    source: ClassVar[str] = "https://reference.langchain.com/python/langchain_core/retrievers/"
    dialect: ClassVar[str] = "langchain"
    package: ClassVar[str] = "langchain-core"
    methods: ClassVar[tuple[str, ...]] = ("ainvoke", "invoke")

    method: str = "langchain"

    async def ask_retriever(
        self,
        retriever: FrameworkObject,
        query: PullQuery,
        leg: str,  # noqa: ARG002 - see base
        depth: int,
    ) -> FrameworkObject:
        """Its documents for the query's text."""
        if hasattr(retriever, "_expects_other_args"):  # a BaseRetriever drops what it does not take
            return await call_function(retriever.invoke, query.text, k=depth)
        name = next(name for name in self.methods if hasattr(retriever, name))
        return await call_function(getattr(retriever, name), query.text)

    def read_document(self, document: FrameworkObject, settings: RetrieverObject) -> Row:
        """``id``, a score of the metadata, ``page_content``."""
        metadata = getattr(document, "metadata", {})
        name = choose_field(metadata, settings.id_field, getattr(document, "id", None))
        score = choose_field(metadata, settings.score_field, None)
        return name, score, getattr(document, "page_content", None)


#: Value of ``id_field`` that names the document a node is of.
SOURCE_DOCUMENT = "ref_doc_id"


@connectors.register
class LlamaIndexConnector(RetrieverConnector):
    """Objects with ``aretrieve`` or ``retrieve`` that return nodes with scores.

    How many a retriever returns is its own ``similarity_top_k``. ``id_field: ref_doc_id`` names the
    document that a node is of, where each document is one node.
    """

    source: ClassVar[str] = (
        "https://developers.llamaindex.ai/python/framework-api-reference/retrievers/"
    )
    dialect: ClassVar[str] = "llamaindex"
    package: ClassVar[str] = "llama-index-core"
    methods: ClassVar[tuple[str, ...]] = ("aretrieve", "retrieve")

    method: str = "llamaindex"

    async def ask_retriever(
        self,
        retriever: FrameworkObject,
        query: PullQuery,
        leg: str,  # noqa: ARG002 - see base
        depth: int,  # noqa: ARG002 - see base
    ) -> FrameworkObject:
        """Its nodes for the query's text."""
        name = next(name for name in self.methods if hasattr(retriever, name))
        return await call_function(getattr(retriever, name), query.text)

    def read_document(self, document: FrameworkObject, settings: RetrieverObject) -> Row:
        """The node's id, its score, and its content."""
        node = getattr(document, "node", document)
        metadata = getattr(node, "metadata", {})
        name = choose_field(metadata, settings.id_field, getattr(node, "node_id", None))
        if settings.id_field == SOURCE_DOCUMENT:
            name = getattr(node, SOURCE_DOCUMENT, None)
        score = getattr(document, "score", None)
        read_content = getattr(node, "get_content", None)
        content = None if read_content is None else read_content()
        return name, choose_field(metadata, settings.score_field, score), content
