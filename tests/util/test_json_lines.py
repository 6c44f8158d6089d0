"""Objects as JSON Lines."""

from __future__ import annotations

import json

from fusion_bench.util.json_text import encode_json_lines


def test_letters_stay_and_each_object_has_a_line() -> None:
    assert encode_json_lines([{"text": "für"}, {}]) == '{"text": "für"}\n{}\n'.encode()
    assert encode_json_lines([]) == b""


def test_half_of_a_surrogate_pair_reads_as_it_was() -> None:
    line = encode_json_lines([{"text": "a\ud800b"}])
    assert json.loads(line) == {"text": "a\ud800b"}
