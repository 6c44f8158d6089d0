"""Ids of four kinds, which cannot be taken for each other."""

from __future__ import annotations

from typing import Any, Self, cast
from uuid import UUID, uuid4

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler, ValidationInfo
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from fusion_bench.errors import ConfigError


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
            _check_uuid(value)
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


def _check_uuid(value: str) -> None:
    try:
        UUID(value)
    except ValueError:
        raise PydanticCustomError("id_uuid", "a UUID is needed") from None
