"""JSON Schemas of stored records, described by their docstrings."""

from __future__ import annotations

import re
from typing import Any

from pydantic import BaseModel
from pydantic.alias_generators import to_camel
from pydantic.json_schema import GenerateJsonSchema
from pydantic_core import core_schema

from fusion_bench.config.json_records import OPTIONAL
from fusion_bench.config.options import read_attributes


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
