"""Check records against the JSON Schemas that the package ships."""

import json
from importlib.resources import files

from jsonschema import Draft202012Validator

SHIPPED = files("fusion_bench") / "schemas"


def shipped_text(record: str) -> str:
    return (SHIPPED / f"{record}.json").read_text(encoding="utf-8")


def check_record(record: str, text: str) -> None:
    """Fail with every path at which a JSON text breaks the shipped schema."""
    schema = json.loads(shipped_text(record))
    Draft202012Validator.check_schema(schema)
    broken = Draft202012Validator(schema).iter_errors(json.loads(text))
    assert [f"{error.json_path}: {error.message:.200}" for error in broken] == []
