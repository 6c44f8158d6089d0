"""The schema of a record: every key required, each described as in the docstring."""

from __future__ import annotations

from typing import Any, Literal

from jsonschema import Draft202012Validator
from pydantic import BaseModel, ConfigDict

from fusion_bench.config.json_records import build_schema


class Part(BaseModel):
    """A part.

    Attributes:
        size: How large; ``None`` where
            nobody measured.
    """

    model_config = ConfigDict(extra="forbid")
    size: float | None = None


class Whole(BaseModel):
    """A whole.

    Attributes:
        parts: Its parts.
    """

    model_config = ConfigDict(extra="forbid")
    format: Literal["whole"] = "whole"
    format_version: int = 3
    parts: tuple[Part, ...] = ()


def errors(**changed: object) -> list[str]:
    record: dict[str, Any] = Whole(parts=(Part(),)).model_dump(mode="json") | changed
    found = Draft202012Validator(build_schema(Whole)).iter_errors(record)
    return [error.json_path for error in found]


def test_the_schema_is_one_and_describes_each_key() -> None:
    schema = build_schema(Whole)
    Draft202012Validator.check_schema(schema)
    assert schema["description"] == "A whole."
    assert schema["properties"]["parts"]["description"] == "Its parts."
    part = schema["$defs"]["Part"]
    assert part["description"] == "A part."
    assert part["properties"]["size"]["description"] == "How large; `null` where nobody measured."


def test_a_record_is_valid_only_with_all_its_keys_and_its_own_format() -> None:
    assert errors() == []
    assert errors(parts=[{"size": 2.5}]) == []
    assert errors(parts=[{}]) == ["$.parts[0]"]
    assert errors(parts=[{"size": "large"}]) == ["$.parts[0].size"]
    assert errors(more=1) == ["$"]
    assert errors(format="other") == ["$.format"]
    assert errors(format_version=2) == ["$.format_version"]
