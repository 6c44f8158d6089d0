"""Frozen records of arrays as data that JSON has."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any, Final

import numpy as np

from fusion_bench.util.table_view import TableView

#: Metadata of a field that another record holds too, and that is written there alone.
SHARED: Final = {"shared": True}


class PlainTable(TableView):
    """A frozen record of arrays that is shown as a table."""

    def to_dict(self) -> dict[str, Any]:
        """Every field but the ``SHARED`` ones, as JSON has it."""
        data: dict[str, Any] = to_plain(self)
        return data


def to_plain(value: object) -> Any:  # noqa: ANN401 - whatever JSON has
    """A record, an array or a collection of these as lists, dictionaries and numbers.

    Args:
        value: NaN becomes None. Fields of a record that are marked ``SHARED`` are left out.
    """
    if isinstance(value, np.ndarray):
        return _plain_array(value)
    if is_dataclass(value) and not isinstance(value, type):
        kept = (each for each in fields(value) if not each.metadata.get("shared"))
        return {each.name: to_plain(getattr(value, each.name)) for each in kept}
    if isinstance(value, Mapping):
        return {str(key): to_plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [to_plain(item) for item in value]
    if isinstance(value, float) and math.isnan(value):
        return None
    return value


def _plain_array(array: np.ndarray[Any, Any]) -> list[Any]:
    if array.dtype.kind == "f" and np.isnan(array).any():
        items = array.astype(object)
        items[np.isnan(array)] = None
        return list(items.tolist())
    return list(array.tolist())
