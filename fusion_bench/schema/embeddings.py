"""Embeddings: read-only vectors of 32-bit floats, lists of numbers in JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler, ValidationInfo
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

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
