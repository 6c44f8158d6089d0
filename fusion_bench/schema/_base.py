"""What all records of searches have in common: names, strictness, JSON."""

from __future__ import annotations

from typing import Annotated, Any, Final, Self, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic.alias_generators import to_camel

from fusion_bench.errors import DataError
from fusion_bench.schema._errors import format_first_error

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
            raise DataError(f"{prefix}{format_first_error(error, cls)}") from None

    def to_json(self) -> str:
        """The record as one line of JSON with the documents' keys; ``from_json`` reads it back."""
        return self.model_dump_json(by_alias=True)
