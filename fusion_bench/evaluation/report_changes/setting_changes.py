"""The differences of two configurations, value by value."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from fusion_bench.evaluation.report_changes.records import SettingChange


def find_setting_changes(
    then: Mapping[str, Any], now: Mapping[str, Any]
) -> tuple[SettingChange, ...]:
    """The values that differ, in the order of the new configuration.

    Args:
        then: Any JSON.
        now: Any JSON.
    """
    old, new = dict(_flatten(then)), dict(_flatten(now))
    paths = dict.fromkeys([*new, *old])
    return tuple(
        SettingChange(path, old.get(path), new.get(path))
        for path in paths
        if old.get(path) != new.get(path)
    )


def _flatten(value: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    """Path and JSON text of each value; a list is one value."""
    for key, item in value.items():
        path = f"{prefix}{key}"
        if isinstance(item, Mapping) and item:
            yield from _flatten(item, f"{path}.")
        else:
            yield path, json.dumps(_normalize(item), ensure_ascii=False, sort_keys=True)


def _normalize(value: Any) -> Any:  # noqa: ANN401 - any JSON
    """Equal numbers as one text: 60.0 is 60."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return [_normalize(item) for item in value] if isinstance(value, list | tuple) else value
