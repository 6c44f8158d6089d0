"""Records as rows of a table."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel

from fusion_bench.util.table_view import make_frame

if TYPE_CHECKING:
    import pandas as pd


def flatten(record: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested keys joined by dots; a list is its JSON, but for a list of texts: comma-separated.

    Args:
        record: As ``model_dump(mode="json")`` gives it.
        prefix: Stands before every key.
    """
    row: dict[str, Any] = {}
    for key, value in record.items():
        if isinstance(value, Mapping):
            row |= flatten(value, f"{prefix}{key}.")
        elif isinstance(value, list | tuple):
            are_texts = all(isinstance(each, str) for each in value)
            row[f"{prefix}{key}"] = (
                ", ".join(value) if are_texts else json.dumps(value, ensure_ascii=False)
            )
        else:
            row[f"{prefix}{key}"] = value
    return row


def frame_of(rows: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """A data frame; a key that a row lacks is missing there."""
    names = dict.fromkeys(name for row in rows for name in row)
    return make_frame({name: [row.get(name) for row in rows] for name in names})


def tuple_tables(record: BaseModel) -> dict[str, pd.DataFrame]:
    """For each field that holds records, a data frame of them; empty fields are left out."""
    values = {name: getattr(record, name) for name in type(record).model_fields}
    return {
        name: frame_of([flatten(each.model_dump(mode="json")) for each in value])
        for name, value in values.items()
        if isinstance(value, tuple) and value and all(isinstance(x, BaseModel) for x in value)
    }


def named_rows(name: str, records: Iterable[BaseModel]) -> list[dict[str, Any]]:
    """Flat records, each with the collection that it belongs to."""
    return [{"collection": name, **flatten(each.model_dump(mode="json"))} for each in records]
