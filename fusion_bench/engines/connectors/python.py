"""Any Python function as a leg."""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Annotated, Any, ClassVar

from pydantic import Field, JsonValue

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
from fusion_bench.engines.connectors._answers import read_hits
from fusion_bench.errors import ConfigError
from fusion_bench.util.calls import call_function

#: Arguments that a function may have beside the text and the depth, which come first.
EXTRA_ARGUMENTS = ("vector", "sparse_vector", "query_id", "texts")


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


class PythonLeg(PythonFunction, LegSettings):
    """A function that searches one list.

    Attributes:
        form: What it searches with: ``text``, ``vector`` or ``sparse_vector``.
    """

    form: QueryForm = "text"

    @property
    def query_form(self) -> QueryForm:
        """As it is configured."""
        return self.form


@connectors.register
class PythonConnector(Connector):
    """Functions of your own code.

    Attributes:
        fused: A function that returns the fused list.
        fingerprint: ``module:function`` without arguments that returns what the lists depend on, as
            JSON; None = the names of the functions and digests of their files.
    """

    source: ClassVar[str] = "the user"

    method: str = "python"
    legs: Annotated[Mapping[LegName, PythonLeg], Field(min_length=1)]
    fused: PythonFunction | None = None
    fingerprint: str | None = None
    attempts: Annotated[int, Field(ge=1, le=100)] = 1

    @asynccontextmanager
    async def connect(self) -> AsyncIterator[EngineSession]:
        """Import the functions."""
        yield PythonSession(self)

    def describe_score(self, leg: str) -> str:
        """Whose score it is."""
        given = self.legs[leg]
        what = "the negative distance" if given.distance else "the score"
        return f"{what} of {given.function}; 1/rank where it returns none"


class PythonSession:
    """Functions that are imported.

    Args:
        connector: Their names.

    Raises:
        ConfigError: One cannot be imported, or is no function.
    """

    def __init__(self, connector: PythonConnector) -> None:
        self._connector = connector
        self._functions = {
            f"legs.{name}.function": self._load(f"legs.{name}.function", leg.function)
            for name, leg in connector.legs.items()
        }
        if connector.fused is not None:
            place = "fused.function"
            self._functions[place] = self._load(place, connector.fused.function)

    @staticmethod
    def _load(place: str, name: str) -> Callable[..., Any]:
        function = load_object(name, place)
        if not callable(function):
            raise ConfigError(f"{place}: {name!r} is no function")
        return function  # type: ignore[no-any-return]

    async def read_leg(
        self, leg: str, query: PullQuery, *, depth: int, texts: bool
    ) -> Sequence[Hit]:
        """What the function of the leg returns."""
        extras = {
            "vector": query.vectors.get(leg),
            "sparse_vector": query.sparse_vectors.get(leg),
        }
        place = f"legs.{leg}.function"
        return await self._call(place, self._connector.legs[leg], query, depth, texts, extras)

    async def read_fused(self, query: PullQuery, *, depth: int, texts: bool) -> Sequence[Hit]:
        """What the fused function returns; its vectors are by the name of the leg."""
        fused = self._connector.fused
        if fused is None:
            raise ConfigError("fused: no function is configured")
        extras = {"vector": dict(query.vectors), "sparse_vector": dict(query.sparse_vectors)}
        return await self._call("fused.function", fused, query, depth, texts, extras)

    async def _call(
        self,
        place: str,
        settings: PythonFunction,
        query: PullQuery,
        depth: int,
        texts: bool,
        extras: Mapping[str, object],
    ) -> Sequence[Hit]:
        function = self._functions[place]
        every = {**extras, "query_id": query.id, "texts": texts}
        wanted = {name: every[name] for name in _list_arguments(function) if name in every}
        items = await call_function(function, query.text, depth, **wanted)
        return read_hits(items, is_distance=settings.distance, texts=texts)

    async def read_fingerprint(self) -> Mapping[str, JsonValue]:
        """What the user's function says, or the names of the functions and their files' digests."""
        name = self._connector.fingerprint
        if name is not None:
            given = await call_function(self._load("fingerprint", name))
            return dict(given)
        return {place: _digest_file(function) for place, function in self._functions.items()}


def _list_arguments(function: Callable[..., Any]) -> set[str]:
    """Names of the arguments after the first two."""
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):  # some functions written in C
        return set()
    return {parameter.name for parameter in parameters[2:]} & set(EXTRA_ARGUMENTS)


def _digest_file(function: Callable[..., Any]) -> str:
    """SHA-256 of the file that holds a function; empty where it is not known."""
    try:
        path = inspect.getsourcefile(inspect.unwrap(function))
        return "" if path is None else hashlib.sha256(Path(path).read_bytes()).hexdigest()
    except (TypeError, OSError):
        return ""
