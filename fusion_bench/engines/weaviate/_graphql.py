"""Values of GraphQL, written and read."""

from __future__ import annotations

import json


def write_literal(value: object) -> str:
    """A value of GraphQL: texts have the escapes of JSON, and all else is written alike."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def parse_number(value: object) -> object:
    """A score, which Weaviate writes as a text; what is no number stays."""
    try:
        return float(value) if isinstance(value, str) else value
    except ValueError:
        return value
