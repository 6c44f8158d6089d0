"""Fields of records: their strict base, kinds of ids, enumerations, embeddings."""

from __future__ import annotations

import typing
from collections.abc import Sequence
from enum import StrEnum
from typing import Annotated, Any, Final, Self, TypeAlias, cast
from uuid import UUID, uuid4

import numpy as np
from numpy.typing import NDArray
from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    ValidationError,
    ValidationInfo,
)
from pydantic.alias_generators import to_camel
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from fusion_bench.errors import ConfigError, DataError, did_you_mean

#: pydantic's type of the error of an unknown key.
UNKNOWN_KEY = "extra_forbidden"
#: Most characters of a value that a message repeats.
SHOWN = 80


def _format_first_error(error: ValidationError, model: type[BaseModel]) -> str:
    """``results.0.score: input should be …, given 1.5``.

    Args:
        error: What pydantic says.
        model: The record that was read.
    """
    errors: list[Any] = list(error.errors(include_url=False))
    first = errors[0]
    if first["type"] == "missing":  # an unknown key beside it may have been meant for it
        beside = (each for each in errors if each["loc"][:-1] == first["loc"][:-1])
        first = next((each for each in beside if each["type"] == UNKNOWN_KEY), first)
    place = [part for part in first["loc"] if not str(part).startswith("function-")]
    if first["type"] == UNKNOWN_KEY:
        *owner, key = place
        for part in owner:
            for name, field in model.model_fields.items():
                if part in (name, field.alias):
                    model = _model_in(field.annotation) or model
        known = [field.alias or name for name, field in model.model_fields.items()]
        hint = did_you_mean(str(key), known)
        text = f"unknown key {str(key)!r}{hint} (known: {', '.join(known)})"
        place = owner
    elif first["type"] == "missing":
        text = "is required"
    elif first["type"] == "json_invalid":
        text = str(first["msg"])
    else:
        text = _format_message(str(first["msg"]), first["input"])
    prefix = ".".join(map(str, place))
    return f"{prefix}: {text}" if prefix else text


def _format_message(message: str, given: object) -> str:
    if message.startswith(("Input", "Value", "String")):
        message = message[0].lower() + message[1:]
    if ", given " in message:
        return message
    value = repr(given)
    if len(value) <= SHOWN:
        return f"{message}, given {value}"
    return message if isinstance(given, dict) else f"{message}, given {value[:SHOWN]}…"


def _model_in(annotation: object) -> type[BaseModel] | None:
    """The model that an annotation names, alone, in a tuple, or beside None."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    models = map(_model_in, typing.get_args(annotation))
    return next((model for model in models if model is not None), None)


#: A score, a confidence or a weight, 0 to 1.
Score: TypeAlias = Annotated[float, Field(ge=0, le=1)]
#: A number of things.
Count: TypeAlias = Annotated[int, Field(ge=0)]
#: A duration in milliseconds.
Milliseconds: TypeAlias = Annotated[float, Field(ge=0)]
#: Texts; Python may give a list.
Texts: TypeAlias = Annotated[tuple[str, ...], Field(strict=False)]


#: Kept apart from the rest: where it sees an alias generator, pydantic's plugin for mypy takes
#: every key for optional.
CAMEL_CASE: Final = ConfigDict(alias_generator=to_camel)


class Record(BaseModel):
    """A frozen record; keys are camelCase in JSON and snake_case in Python, and both are read.

    A value of another type is refused, never converted: ``"20"`` is no number. So are unknown
    keys, NaN and infinity.
    """

    model_config = ConfigDict(
        populate_by_name=True,
        frozen=True,
        extra="forbid",
        strict=True,
        allow_inf_nan=False,
        **CAMEL_CASE,
    )

    @classmethod
    def from_json(
        cls, text: str | bytes, where: str = "", context: dict[str, Any] | None = None
    ) -> Self:
        """Read one JSON object.

        Args:
            text: The object.
            where: Prefix of an error, such as ``results.jsonl:3``.
            context: ``{"uuid_ids": True}`` asks for ids that are UUIDs, ``{"dimensions": 384}``
                for embeddings of that length.

        Raises:
            DataError: Says where, which rule, and what was given; the first thing wrong.
        """
        try:
            return cls.model_validate_json(text, context=context)
        except ValidationError as error:
            prefix = f"{where}: " if where else ""
            raise DataError(f"{prefix}{_format_first_error(error, cls)}") from None

    def to_json(self) -> str:
        """The record as one line of JSON with the documents' keys; ``from_json`` reads it back."""
        return self.model_dump_json(by_alias=True)


class QueryType(StrEnum):
    """What a query asks for (REQ-ENUM-001)."""

    LOCAL = "local"
    GLOBAL = "global"
    RELATIONSHIP = "relationship"
    HYBRID = "hybrid"


class SearchStrategy(StrEnum):
    """How documents are searched for (REQ-ENUM-002)."""

    KEYWORD = "keyword"
    SEMANTIC = "semantic"
    GRAPH = "graph"
    HYBRID = "hybrid"


class SearchResultType(StrEnum):
    """What a result is (REQ-ENUM-003)."""

    CHUNK = "chunk"
    ENTITY = "entity"
    COMMUNITY = "community"


#: The strategies that return documents of their own; ``hybrid`` fuses them.
SINGLE_STRATEGIES = (SearchStrategy.KEYWORD, SearchStrategy.SEMANTIC, SearchStrategy.GRAPH)

#: In a record the text of a member will do, also from Python.
AnyQueryType: TypeAlias = Annotated[QueryType, Field(strict=False)]
AnyStrategy: TypeAlias = Annotated[SearchStrategy, Field(strict=False)]
AnyResultType: TypeAlias = Annotated[SearchResultType, Field(strict=False)]


class BrandedId(str):
    """A text that knows what it names.

    A record takes an id of the right kind, or a bare text, which then becomes one; an id of another
    kind is refused. Type checkers refuse the bare text too.

    Raises:
        ConfigError: The text is empty.
    """

    __slots__ = ()

    def __new__(cls, text: str) -> Self:
        """The id with this text."""
        if not text:
            raise ConfigError(
                f"{cls.__name__}: an id is a text of at least one character, given ''"
            )
        return super().__new__(cls, text)

    @classmethod
    def generate(cls) -> Self:
        """A new id: a random UUID."""
        return cls(str(uuid4()))

    @classmethod
    def _check_id(cls, value: object, info: ValidationInfo) -> Self:
        if not isinstance(value, str) or not value:
            raise PydanticCustomError(
                "id_type", "an id is a text of at least one character", {"kind": cls.__name__}
            )
        if isinstance(value, BrandedId) and not isinstance(value, cls):
            kinds = {"needed": cls.__name__, "given": type(value).__name__}
            raise PydanticCustomError("id_kind", "{needed} is needed, and this is {given}", kinds)
        if info.context and info.context.get("uuid_ids"):
            try:
                UUID(value)
            except ValueError:
                raise PydanticCustomError("id_uuid", "a UUID is needed") from None
        return value if isinstance(value, cls) else cls(value)

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:  # noqa: ANN401 - pydantic's arguments
        return core_schema.with_info_plain_validator_function(
            cast("core_schema.WithInfoValidatorFunction", cls._check_id),
            serialization=core_schema.to_string_ser_schema(),
        )

    @classmethod
    def __get_pydantic_json_schema__(
        cls, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        return {"type": "string", "minLength": 1}


class ChunkId(BrandedId):
    """The id of a chunk of text."""

    __slots__ = ()


class FileId(BrandedId):
    """The id of a file."""

    __slots__ = ()


class EntityId(BrandedId):
    """The id of an entity of the knowledge graph."""

    __slots__ = ()


class CommunityId(BrandedId):
    """The id of a cluster of entities."""

    __slots__ = ()


Vector: TypeAlias = NDArray[np.float32]


def to_float32(values: Sequence[float] | NDArray[Any]) -> Vector:
    """A read-only copy as a vector of 32-bit floats.

    Args:
        values: D numbers; each is rounded to the nearest 32-bit float.

    Raises:
        ValueError: No vector, no numbers, or one that is not finite as a 32-bit float.
    """
    if isinstance(values, np.ndarray):
        if values.ndim != 1 or values.dtype.kind not in "fiu":
            raise ValueError(
                f"one dimension of numbers is needed, given {values.ndim} of {values.dtype}"
            )
    elif not {float, int}.issuperset(map(type, values)):  # of which a boolean is none
        wrong = next(value for value in values if type(value) not in (float, int))
        raise ValueError(f"a list of numbers is needed, given {wrong!r:.40} in it")
    with np.errstate(over="ignore"):
        vector: Vector = np.array(values, dtype=np.float32)
    if not vector.size:
        raise ValueError("at least one number is needed, given none")
    if not np.isfinite(vector).all():
        place = int(np.argmin(np.isfinite(vector)))
        raise ValueError(f"number {place} is not finite as a 32-bit float, given {values[place]!r}")
    vector.flags.writeable = False
    return vector


class EmbeddingField:
    """How pydantic reads and writes a :data:`Vector`.

    From Python an array of 32-bit floats or a list of numbers; an array of another type is refused,
    as rounding it would go unnoticed. JSON has each number exactly, so the round trip is exact.
    """

    @staticmethod
    def check_vector(value: object, info: ValidationInfo) -> Vector:
        """The value as a vector; its length is checked where the context says ``dimensions``."""
        if isinstance(value, np.ndarray) and value.dtype != np.float32:
            raise PydanticCustomError(
                "embedding",
                "32-bit floats are needed, and these are {dtype}: convert with to_float32",
                {"dtype": str(value.dtype)},
            )
        if not isinstance(value, np.ndarray | list | tuple):
            raise PydanticCustomError("embedding", "a list of numbers is needed")
        try:
            vector = to_float32(value)
        except (ValueError, OverflowError) as error:
            raise PydanticCustomError("embedding", "{text}", {"text": str(error)}) from None
        dimensions = (info.context or {}).get("dimensions", len(vector))
        if len(vector) != dimensions:
            raise PydanticCustomError(
                "embedding",
                "an embedding of {needed} dimensions is needed, and this has {given}",
                {"needed": dimensions, "given": len(vector)},
            )
        return vector

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:  # noqa: ANN401 - pydantic's arguments
        return core_schema.with_info_plain_validator_function(
            cls.check_vector,
            serialization=core_schema.plain_serializer_function_ser_schema(
                _list_numbers, when_used="json"
            ),
        )

    @classmethod
    def __get_pydantic_json_schema__(
        cls, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        return {"type": "array", "items": {"type": "number"}, "minItems": 1}


def _list_numbers(vector: Vector) -> list[float]:
    return list(map(float, vector))
