"""Numbers and switches of models: what pydantic would turn into one is refused.

Pydantic takes ``true`` for 1, ``'60'`` for 60 and 1 for ``true``. Whoever writes one of these into
a configuration means something else. The rules hold for every model, so they stand in one place
and no field has to ask for them.
"""

from __future__ import annotations

import re
from typing import Any, Final, cast

from pydantic import GetCoreSchemaHandler
from pydantic_core import PydanticCustomError, PydanticKnownError, core_schema

from fusion_bench.util.decimal_numbers import GREATEST, is_decimal

#: Parts of a schema that hold no schema.
OPAQUE: Final = frozenset({"metadata", "default", "config", "serialization", "expected", "cls"})
#: Kinds of schemas that are rewritten.
KINDS: Final = frozenset({"int", "float", "bool"})
#: The digits of a key that is a whole number, as JSON writes it.
RANK: Final = re.compile(r"[1-9]\d{0,17}", re.ASCII)


class StrictNumbers:
    """Base of a pydantic model whose numbers are numbers and whose switches are true or false.

    - A float may be a whole number, or ``1e-3``, which YAML 1.1 takes for text. Where text is
      allowed too, it stays text.
    - A whole number may be 2.0, and fits into 64 bits.
    - A key that is a whole number may be its digits, as JSON writes it; 1.0 is none.

    Models inside it keep their own rules.
    """

    @classmethod
    def __get_pydantic_core_schema__(
        cls, source: type, handler: GetCoreSchemaHandler
    ) -> core_schema.CoreSchema:
        """As pydantic makes it, but strict."""
        return cast("core_schema.CoreSchema", _refuse_lax_values(handler(source), cls))


def _refuse_lax_values(schema: Any, model: type) -> Any:  # noqa: ANN401 - schemas of pydantic are plain dictionaries
    """The schema of a model without what it would convert."""

    def rewrite(part: Any, *, is_text: bool = False) -> Any:  # noqa: ANN401 - as above
        if isinstance(part, list | tuple):
            return type(part)(rewrite(item, is_text=is_text) for item in part)
        kind = part.get("type") if isinstance(part, dict) else None
        if kind in KINDS:
            return _tighten(part, is_text=is_text)
        if not isinstance(part, dict) or (kind == "model" and part["cls"] is not model):
            return part
        is_text = is_text or (kind == "union" and _has_text(part["choices"]))
        rewritten = {
            key: value if key in OPAQUE and kind is not None else rewrite(value, is_text=is_text)
            for key, value in part.items()
        }
        if kind == "dict" and part.get("keys_schema", {}).get("type") == "int":
            rewritten["keys_schema"] = core_schema.no_info_before_validator_function(
                _check_key, part["keys_schema"]
            )
        return rewritten

    return rewrite(schema)


def _has_text(choices: list[Any]) -> bool:
    """Whether a value may also be text; a choice may stand with a label behind it."""
    schemas = (choice[0] if isinstance(choice, tuple) else choice for choice in choices)
    return any(schema.get("type") == "str" for schema in schemas)


def _tighten(schema: Any, *, is_text: bool) -> Any:  # noqa: ANN401 - as above
    kind = schema["type"]
    if kind == "int":
        return core_schema.no_info_before_validator_function(_check_whole, schema)
    strict = {**schema, "strict": True}
    if kind == "bool" or is_text:
        return strict
    return core_schema.no_info_before_validator_function(_read_exponent, strict)


def _read_exponent(value: object) -> object:
    """The number of ``1e-3``, which YAML 1.1 takes for text; anything else as it is.

    Raises:
        PydanticKnownError: A whole number beyond what a float holds.
    """
    if isinstance(value, str) and "e" in value.lower() and is_decimal(value):
        return float(value)
    if isinstance(value, int) and abs(value) > GREATEST:
        raise _too_large()
    return value


def _check_whole(value: object) -> object:
    """The value, unless pydantic would only take it for a whole number, or it is too large."""
    if isinstance(value, bool | str | bytes):
        raise PydanticKnownError("int_type")
    if isinstance(value, int) and abs(value) > GREATEST:
        raise _too_large()
    return value


def _check_key(value: object) -> object:
    """A key that is a whole number, or its digits."""
    is_whole = isinstance(value, int) and not isinstance(value, bool) and abs(value) <= GREATEST
    if is_whole or (isinstance(value, str) and RANK.fullmatch(value)):
        return value
    raise PydanticKnownError("int_type")


def _too_large() -> PydanticCustomError:
    return PydanticCustomError("too_large", "input should be at most {most}", {"most": GREATEST})
