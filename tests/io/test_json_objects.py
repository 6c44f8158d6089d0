"""JSON objects: documents, excerpts."""

import gzip
from pathlib import Path

import pytest

from fusion_bench.data.records import Query
from fusion_bench.errors import DataError
from fusion_bench.io import json_objects
from fusion_bench.io.json_objects import (
    MAX_LENGTH,
    query_excerpt,
    read_excerpts,
    read_items,
    read_titles,
    shorten,
)

LINES = """\
{"id": "d1", "title": "A title", "text": "and a text"}
{"_id": "d2", "title": "", "text": "only\\na  text"}
{"id": 3, "text": "a number as its id"}
{"id": "d4", "text": 4}
not JSON
["d5"]
{"id": "d6"}
"""


@pytest.mark.parametrize(
    ("text", "expected"),
    [("short", "short"), ("a\n b\tc", "a b c"), ("x" * 60, "x" * 60), ("x" * 61, "x" * 60 + "…")],
)
def test_a_text_is_cut_to_sixty_characters(text: str, expected: str) -> None:
    assert shorten(text) == expected
    assert len(shorten(text)) <= MAX_LENGTH + 1


def test_what_is_not_there_has_no_excerpt_and_no_title(tmp_path: Path) -> None:
    assert query_excerpt(None) == query_excerpt(Query("q")) == ""
    assert query_excerpt(Query("q", text="why?")) == "why?"
    assert read_titles(None, ["d1"]) == {}
    assert read_titles(tmp_path / "no.jsonl", ["d1"]) == {}
    assert read_titles(tmp_path, ["d1"]) == {}
    (tmp_path / "damaged.gz").write_bytes(gzip.compress(LINES.encode() * 9)[:40])
    assert read_titles(tmp_path / "damaged.gz", ["d7"]) == {}


@pytest.mark.parametrize("packed", [False, True])
def test_titles_are_those_of_the_wanted_documents(tmp_path: Path, *, packed: bool) -> None:
    path = tmp_path / "documents.jsonl"
    data = LINES.encode()
    path.write_bytes(gzip.compress(data) if packed else data)
    wanted = ["d1", "d2", "3", "d4", "d5", "d6", "d7"]
    assert read_titles(path, wanted) == {
        "d1": "A title",
        "d2": "only a text",
        "3": "a number as its id",
    }
    assert read_titles(path, []) == {}


def test_excerpts_have_title_and_text_and_other_lines_are_not_parsed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "documents.jsonl"
    path.write_text(LINES, encoding="utf-8")
    wanted = ["d1", "d2", "3", "d4"]
    assert read_excerpts(path, wanted, length=14, limit=100) == {
        "d1": "A title: and a…",
        "d2": "only a text",
        "3": "a number as it…",
    }
    assert list(read_excerpts(path, wanted, length=14, limit=26)) == ["d1", "d2"]
    assert list(read_excerpts(path, wanted, length=14, limit=25)) == ["d1"]
    lines = [f'{{"id": "d{n}", "text": "t"}}\n' for n in range(100)]
    path.write_text("".join(lines), encoding="utf-8")
    parsed = []
    monkeypatch.setattr(json_objects, "_parse_excerpt", lambda line: parsed.append(line))
    read_titles(path, ["d7", "d42"])
    assert parsed == [lines[7].encode(), lines[42].encode()]


@pytest.mark.parametrize(
    "line",
    [
        '{"id": "d1", "text": "t"}',
        '{"text": "t", "id":"d1"}',
        '{"meta": {"id": "other"}, "id"  :\t"d1", "text": "t"}',
        '{"text": "t", "meta": {"id": 3}, "_id": "d1"}',
        r'{"id": "d\u0031", "text": "t"}',
        r'{"id": "d1", "text": "t", "title": "\ud800"}',
    ],
)
def test_a_document_is_found_however_its_line_is_written(tmp_path: Path, line: str) -> None:
    path = tmp_path / "documents.jsonl"
    path.write_text(f'{{"id": "x", "text": "\\"id\\": \\"d1\\""}}\n{line}\n', encoding="utf-8")
    assert read_titles(path, ["d1"]) == {"d1": "t"}


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
