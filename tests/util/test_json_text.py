"""JSON: strict reading, lines."""

import json

import pytest

from fusion_bench.util.json_text import encode_json_lines, parse_embedded_object


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"a": 1}', {"a": 1}),
        ('Here it is:\n```json\n{"a": {"b": 2}}\n```', {"a": {"b": 2}}),
    ],
)
def test_the_object_in_a_text(text: str, expected: dict[str, object]) -> None:
    assert parse_embedded_object(text) == expected


@pytest.mark.parametrize(
    "text", ["", "none", "[1]", "}", "1}", "} {", '{"a": 1, "a": 2}', '{"a": 1} or {"a": 2}']
)
def test_a_text_without_one_object_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"not JSON|a key twice"):
        parse_embedded_object(text)


def test_letters_and_half_surrogate_pairs_stay_and_each_object_has_a_line() -> None:
    assert encode_json_lines([{"text": "für"}, {}]) == '{"text": "für"}\n{}\n'.encode()
    assert encode_json_lines([]) == b""
    line = encode_json_lines([{"text": "a\ud800b"}])
    assert json.loads(line) == {"text": "a\ud800b"}
