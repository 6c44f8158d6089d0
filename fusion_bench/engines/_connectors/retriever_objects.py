"""Connectors of retriever objects of a framework, which the user's own code makes."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from importlib.metadata import PackageNotFoundError, version
from typing import Annotated, Any, ClassVar, TypeAlias

from pydantic import Field, JsonValue, field_validator

from fusion_bench.config.models import StrictModel
from fusion_bench.connector import (
    Connector,
    EngineSession,
    Hit,
    LegName,
    LegSettings,
    PullQuery,
    load_object,
)
from fusion_bench.engines._connectors.python_hits import make_hits
from fusion_bench.errors import ConfigError
from fusion_bench.experiment.dialect import dialects
from fusion_bench.util.calls.user_code import call_function

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
