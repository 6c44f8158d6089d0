"""JSON Lines are parsed together only where that accepts no more than line by line."""

from __future__ import annotations

from pathlib import Path

import pytest

from fusion_bench.errors import DataError
from fusion_bench.io.json_objects import read_items


def write(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "a.jsonl"
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ('{"a": 1}\n{"b": {"c": 2}}\n', [1, 2]),
        ('{"a": 1}\n\n{"b": {"c": 2}}', [1, 3]),
        (' {"a": 1}\n{"b": {"c": 2}} \r\n', [1, 2]),
        ('{"a": 1}\n{"b": {"c": 2}}', [1, 2]),
    ],
)
def test_every_object_has_its_line(text: str, lines: list[int], tmp_path: Path) -> None:
    items = list(read_items(write(tmp_path, text)))
    assert [item.value for item in items] == [{"a": 1}, {"b": {"c": 2}}]
    assert [item.place for item in items] == lines


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ('{"a": 1},{"b": 2}\n{"c": 3}\n', 1),
        ('{"a": 1},{"b": 2}\n{"c": [{}\n{"d": 4}]}\n', 1),
        ('{"x": 1}\n{"a": {}\n{"b": 2}}\n', 2),
        ('{"x": 1}\n{"a": "b}\n{c"}\n', 2),
        ('{"x": 1}\n{"a": 1}}\n{"b": 2}\n', 2),
        ('{"x": 1}\n{}{}\n', 2),
    ],
)
def test_what_is_no_object_a_line_is_refused_with_its_line(
    text: str, line: int, tmp_path: Path
) -> None:
    with pytest.raises(DataError, match=rf"a\.jsonl:{line}: "):
        list(read_items(write(tmp_path, text)))
