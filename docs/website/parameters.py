"""The table of a method's parameters: default, allowed values, what ``tune`` searches, meaning."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from docs.website.docstrings import find_meanings
from docs.website.examples import read_keys
from docs.website.page import format_flow, format_table
from fusion_bench.config.models import StrictModel
from fusion_bench.config.parameters import Parameter

COLUMNS = ("parameter", "default", "allowed", "`tune` searches", "meaning")
#: What no table explains: every method has it, and it says which method this is.
METHOD = "method"
#: JSON Schema's types in words.
TYPES = {
    "boolean": "`true`, `false`",
    "string": "text",
    "null": "`null`",
    "array": "a list",
    "object": "a mapping",
    "number": "a number",
    "integer": "a whole number",
}


def format_parameters(
    model: type[StrictModel], defaults: Mapping[str, str], space: Sequence[Parameter]
) -> str:
    """The table of a method; one sentence where it has no parameters.

    Args:
        model: The method.
        defaults: Parameter → its default as JSON, ``required`` where there is none.
        space: What can be tuned.
    """
    schema = model.model_json_schema()
    meanings = find_meanings(model)
    rows = []
    for name in model.model_fields:
        if name == METHOD:
            continue
        described = {**schema["properties"][name]}
        values = "; ".join(dict.fromkeys(describe_values(described, schema.get("$defs", {}))))
        searched = describe_search(name, space)
        rows.append(
            (f"`{name}`", _format_default(defaults[name]), values, searched, meanings.get(name, ""))
        )
    return format_table(COLUMNS, rows) if rows else "It has no parameters.\n"


def _format_default(text: str) -> str:
    """A default as YAML has it; the name of a method, and ``required``, as they are."""
    try:
        return f"`{format_flow(read_keys(json.loads(text)))}`"
    except json.JSONDecodeError:
        return f"`{text}`" if text != "required" else text


def describe_values(schema: Mapping[str, Any], models: Mapping[str, Any]) -> Iterator[str]:
    """What a field may hold, in words, from its JSON Schema."""
    for option in schema.get("anyOf", ()):
        yield from describe_values(option, models)
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        yield f"a {models[name].get('title', name).lower()}"
    elif "enum" in schema or "const" in schema:
        yield ", ".join(f"`{value}`" for value in schema.get("enum", [schema.get("const")]))
    elif "type" in schema:
        yield _describe_type(schema, models)


def _describe_type(schema: Mapping[str, Any], models: Mapping[str, Any]) -> str:
    kind = TYPES[schema["type"]]
    if schema["type"] == "object":
        inner = schema.get("additionalProperties")
        values = "; ".join(describe_values(inner, models)) if isinstance(inner, dict) else ""
        key = "up to a rank" if "integer" in json.dumps(schema.get("propertyNames", {})) else "key"
        return f"{kind}: {key} → {values}" if values else kind
    bounds = [
        f"{words} {format_number(schema[key])}"
        for key, words in (
            ("minimum", "at least"),
            ("exclusiveMinimum", "above"),
            ("maximum", "at most"),
            ("exclusiveMaximum", "below"),
            ("multipleOf", "in steps of"),
        )
        if key in schema
    ]
    return " ".join([kind, ", ".join(bounds)]).strip()


def format_number(number: float) -> str:
    """``1,000,000``, ``0.5``, ``1e-06``."""
    return f"{int(number):,}" if float(number).is_integer() else f"{number:g}"


def describe_search(name: str, space: Iterable[Parameter]) -> str:
    """The range that a search tries; empty where it leaves the parameter alone."""
    parts = [part for part in space if part.path.split(".")[0] == name]
    return "; ".join(dict.fromkeys(map(_describe_range, parts)))


def _describe_range(parameter: Parameter) -> str:
    if parameter.kind == "choice":
        return ", ".join(f"`{json.dumps(value).strip(chr(34))}`" for value in parameter.choices)
    low, high = parameter.bounds
    step = f", in steps of {parameter.step:g}" if parameter.step else ""
    scale = ", by its logarithm" if parameter.log else ""
    return f"{format_number(low)} to {format_number(high)}{step}{scale}"
