"""Names and values of GraphQL, checked, written and read."""

from __future__ import annotations

import json
import re
from typing import Annotated, Final, TypeAlias

from pydantic import AfterValidator

_NAME: Final = re.compile(r"[_A-Za-z][_0-9A-Za-z]*")


def _check_property(name: str) -> str:
    if not _NAME.fullmatch(name):
        raise ValueError(f"{name!r} is no property: letters, digits and _ are allowed")
    return name


def _check_boosted(text: str) -> str:
    name, _, boost = text.partition("^")
    _check_property(name)
    if boost and not boost.isdecimal():
        raise ValueError(f"{text!r}: a boost is a whole number, such as {name}^2")
    return text


def _check_collection(name: str) -> str:
    if not _NAME.fullmatch(name) or not name[0].isupper():
        raise ValueError(f"{name!r} is no collection: its name begins with a capital letter")
    return name


Property: TypeAlias = Annotated[str, AfterValidator(_check_property)]
Boosted: TypeAlias = Annotated[str, AfterValidator(_check_boosted)]
CollectionName: TypeAlias = Annotated[str, AfterValidator(_check_collection)]


def write_literal(value: object) -> str:
    """A value of GraphQL: texts have the escapes of JSON, and all else is written alike."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def parse_number(value: object) -> object:
    """A score, which Weaviate writes as a text; what is no number stays."""
    try:
        return float(value) if isinstance(value, str) else value
    except ValueError:
        return value
