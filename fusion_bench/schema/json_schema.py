"""JSON Schemas of all records and enumerations."""

from __future__ import annotations

from typing import Any

from pydantic.json_schema import models_json_schema

from fusion_bench.config.files.json_schema import WrittenRecord, describe_properties
from fusion_bench.schema._base import Record
from fusion_bench.schema.query import QueryClassification
from fusion_bench.schema.result import SearchResult
from fusion_bench.schema.settings import RerankConfig, RRFConfig

#: Every other record is part of one of these.
ROOTS: tuple[type[Record], ...] = (SearchResult, QueryClassification, RRFConfig, RerankConfig)


def build_search_schema() -> dict[str, Any]:
    """JSON Schema (draft 2020-12) of a search's result; ``$defs`` has all types by name.

    It says what is read: keys with a default may be left out. Rules between several keys, such as
    the sum of the weights, are checked when a record is read.
    """
    _, schema = models_json_schema([(model, "validation") for model in ROOTS])
    for record in schema["$defs"].values():
        describe_properties(record)
        for value in record.get("properties", {}).values():
            value.pop("title", None)
    reference = f"#/$defs/{SearchResult.__name__}"
    return {"$schema": WrittenRecord.schema_dialect, "$ref": reference, **schema}
