"""Base class of connectors: a search engine as a configuration."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from typing import Annotated, Any, ClassVar, Final, Literal, TypeAlias

from pydantic import ConfigDict, Field

from fusion_bench.config.limits import MOST_WORKERS, Rank
from fusion_bench.config.models import StrictModel, UniqueNames
from fusion_bench.config.registry import Method, MethodRegistry
from fusion_bench.connector.session import EngineSession

#: What a leg searches with.
QueryForm: TypeAlias = Literal["text", "vector", "sparse_vector"]
#: A leg's name is that of its run: of a file, and of a source in an experiment.
LEG_NAME: Final = r"^[A-Za-z0-9][A-Za-z0-9._+-]*$"
LegName: TypeAlias = Annotated[str, Field(pattern=LEG_NAME, max_length=100)]


class LegSettings(StrictModel):
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
        """What the leg searches with; an engine's vector legs override it."""
        return "text"


class SearchLeg(LegSettings):
    """A leg that states what it searches with.

    Attributes:
        search: What is sent of a query; an engine's legs allow what it takes.
    """

    search: QueryForm

    @property
    def query_form(self) -> QueryForm:
        """As ``search`` says."""
        return self.search


class Connector(Method, ABC):
    """One search engine from which lists are pulled, as a configuration.

    Subclasses have their own legs, ``legs: Mapping[str, EngineLeg]``, and where the engine fuses
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
    """

    operational: ClassVar[frozenset[str]] = frozenset(
        {"timeout", "concurrency", "requests_per_minute", "attempts", "wait", "key"}
    )
    model_config = ConfigDict(defer_build=True)

    source: ClassVar[str]
    dialect: ClassVar[str] = ""

    method: str
    legs: Annotated[Mapping[LegName, LegSettings], Field(min_length=1)]
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

    def describe_score(self, leg: str) -> str:  # noqa: ARG002 - of some engines
        """What the scores of a leg are, for the provenance: ``BM25``, ``1 − cosine distance``."""
        return "the engine's own score"

    def describe_replay(self, depth: int) -> Mapping[str, Any] | None:  # noqa: ARG002 - of some engines
        """Keys of a system, without ``dialect`` and ``runs``, that replays ``fused`` on the legs.

        None = nothing does. By default the fusion as it is configured.

        Args:
            depth: Of the pull: most hits of the fused answer, and of legs without a depth.
        """
        if self.fused is None or not self.dialect:
            return None
        fusion = self.fused
        data = fusion.model_dump(mode="json") if isinstance(fusion, StrictModel) else fusion
        return {"fusion": data}

    def check_depth(self, leg: str, depth: int) -> None:
        """Refuse, before anything is asked, a depth that the engine cannot return.

        Args:
            leg: Name of the leg; empty = the fused answer.
            depth: Most documents per query.

        Raises:
            ConfigError: It is too great.
        """


connectors: MethodRegistry[Connector] = MethodRegistry(
    "search engine", "fusion_bench.engines", "fusion_bench.connectors", Connector
)
