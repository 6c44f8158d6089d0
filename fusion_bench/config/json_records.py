"""Stored JSON records, read by the version of their format."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Collection, Iterator
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, Final, TypeVar
from weakref import finalize

from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic.alias_generators import to_camel
from pydantic.json_schema import GenerateJsonSchema
from pydantic_core import core_schema

from fusion_bench.config.models import DeferredModel, Location, Model, make_config_error
from fusion_bench.config.options import read_attributes
from fusion_bench.errors import DataError
from fusion_bench.util.files import explain_error, read_regular_text
from fusion_bench.util.json_text import refuse_repeated_keys


def none_if_nan(value: float | None) -> float | None:
    """The number; None for NaN, which JSON has not."""
    return None if value is None or math.isnan(value) else value


Result = TypeVar("Result")


class _NoneIfNan:
    """The schema of a number that may be missing, the same for each of some hundred fields."""

    @classmethod
    def __get_pydantic_core_schema__(cls, *_: object) -> core_schema.CoreSchema:
        """Without a look at the signature of the function, which takes as long as the rest."""
        number = core_schema.nullable_schema(core_schema.float_schema())
        return core_schema.no_info_after_validator_function(none_if_nan, number)


#: A number that may be missing: null in JSON, None here.
OptionalFloat = Annotated[float | None, _NoneIfNan]


class ReportRecord(DeferredModel):
    """Frozen; a key it does not know means another format, hence an error."""

    model_config = ConfigDict(frozen=True, extra="forbid", ser_json_inf_nan="null")


def compute_once(function: Callable[[Model], Result]) -> Callable[[Model], Result]:
    """Make a function of a frozen record keep its result as long as the record lives."""
    results: dict[int, Result] = {}

    @wraps(function)
    def find(record: Model) -> Result:
        key = id(record)
        if key not in results:
            results[key] = function(record)
            finalize(record, results.pop, key, None)
        return results[key]

    return find


class StoredRecord(DeferredModel):
    """Frozen; refuses unknown keys and NaN."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


def read_stored(
    path: Path, model: type[Model], *, what: str, remedy: str, older: Collection[int] = ()
) -> Model:
    """Read a JSON file that holds one record.

    A number is a finite number, and neither ``true`` nor a text.

    Args:
        path: The file.
        model: Its fields ``format`` and ``format_version`` have by default what is read.
        what: What the file is, such as ``report``.
        remedy: What to do about a file that cannot be used.
        older: Further versions of the format that the model reads.

    Raises:
        DataError: No such file, not JSON, not such a record, a format that this version does not
            know, or a field that breaks a rule.
    """
    try:
        text = read_regular_text(path)
        data = json.loads(text, object_pairs_hook=refuse_repeated_keys)
    except FileNotFoundError:
        raise DataError(f"{path}: no such file") from None
    except (OSError, DataError, ValueError, RecursionError) as error:
        raise DataError(f"{path}: not a JSON {what}: {explain_error(error)}: {remedy}") from None
    known = {key: model.model_fields[key].default for key in ("format", "format_version")}
    if not isinstance(data, dict) or data.get("format") != known["format"]:
        raise DataError(f"{path}: not a {what} of fusion-bench (no 'format': '{known['format']}')")
    if data.get("format_version") not in {known["format_version"], *older}:
        raise DataError(
            f"{path}: {what} format {data.get('format_version')!r}, and this version reads format "
            f"{known['format_version']}: {remedy}"
        )
    infinite = next(_find_infinite(data, ()), None)
    if infinite is not None:
        place, number = infinite
        raise DataError(
            f"{path}: {'.'.join(map(str, place))}: a finite number is needed, given {number}: "
            f"{remedy}"
        )
    try:
        return model.model_validate_json(text, strict=True)
    except ValidationError as error:
        raise DataError(f"{path}: {make_config_error(error, data)}: {remedy}") from None


def _find_infinite(data: object, place: Location) -> Iterator[tuple[Location, float]]:
    """NaN and infinity with their places: Python's JSON has ``NaN``, and reads 1e999."""
    if isinstance(data, dict):
        for key, value in data.items():
            yield from _find_infinite(value, (*place, key))
    elif isinstance(data, list):
        for number, value in enumerate(data):
            if isinstance(value, float):
                if not math.isfinite(value):
                    yield (*place, number), value
            elif value is not None:
                yield from _find_infinite(value, (*place, number))
    elif isinstance(data, float) and not math.isfinite(data):
        yield place, data


#: In ``json_schema_extra`` of a field: what writes the record may leave it out.
OPTIONAL: Final = "optional"


class WrittenRecord(GenerateJsonSchema):
    """A record is written with every field, whether it has a default or not."""

    def field_is_required(self, *_: Any, **__: Any) -> bool:  # noqa: ANN401 - pydantic's arguments
        """Always."""
        return True

    def field_title_should_be_set(self, *_: Any) -> bool:  # noqa: ANN401 - as above
        """Never: a title would repeat the key."""
        return False

    def model_schema(self, schema: core_schema.ModelSchema) -> dict[str, Any]:
        """With what the bases' docstrings say of the fields that a record inherits."""
        record = super().model_schema(schema)
        for base in schema["cls"].__mro__[1:]:
            meanings = read_attributes(base.__dict__.get("__doc__") or "")
            for name in meanings.keys() & record.get("properties", {}).keys():
                meaning = _format_description(meanings[name])
                record["properties"][name].setdefault("description", meaning)
        return record


def build_schema(model: type[BaseModel]) -> dict[str, Any]:
    """JSON Schema (draft 2020-12) of a record as it is written.

    Args:
        model: The record; the defaults of ``format`` and ``format_version`` are its only values.
    """
    schema = model.model_json_schema(schema_generator=WrittenRecord, mode="serialization")
    for record in (schema, *schema.get("$defs", {}).values()):
        describe_properties(record)
    for key in ("format", "format_version"):
        schema["properties"][key]["const"] = model.model_fields[key].default
    return {"$schema": WrittenRecord.schema_dialect, **schema}


def describe_properties(record: dict[str, Any]) -> None:
    """Move what the docstring says of each attribute to its property, in camelCase or not."""
    documentation = record.get("description", "")
    record["description"] = _format_description(documentation.partition("\n\nAttributes:\n")[0])
    for name, field in record.get("properties", {}).items():
        if field.pop(OPTIONAL, False):
            record["required"].remove(name)
    for name, meaning in read_attributes(documentation).items():
        key = name if name in record["properties"] else to_camel(name)
        record["properties"][key]["description"] = _format_description(meaning)


def _format_description(text: str) -> str:
    """A docstring's text on one line, in terms of JSON and without markup of Sphinx."""
    plain = re.sub(r":\w+:`", "`", text.replace("``", "`"))
    return re.sub(r"\bNone\b", "null", " ".join(plain.split()))
