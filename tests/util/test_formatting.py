"""Names from anywhere, written and shown."""

from __future__ import annotations

from fusion_bench.errors import did_you_mean
from fusion_bench.util.formatting import escape_control_chars, is_encodable, pluralize


def test_names_are_shown_without_control_characters() -> None:
    assert (
        escape_control_chars("a\nb\x1b[31m\u202e\xa0\udc00é 中")
        == "a\\nb\\x1b[31m\\u202e\\xa0\\udc00é 中"
    )
    assert escape_control_chars(escape_control_chars("a\nb")) == "a\\nb"


def test_half_a_surrogate_pair_is_no_text() -> None:
    assert is_encodable("plain")
    assert is_encodable("🙂 ü")
    assert not is_encodable("a\udc00")


def test_a_number_and_its_noun_agree() -> None:
    said = [pluralize(n, noun) for n in (0, 1, 1234) for noun in ("query", "rerank list")]
    assert said == [
        *("0 queries", "0 rerank lists"),
        *("1 query", "1 rerank list"),
        *("1,234 queries", "1,234 rerank lists"),
    ]


def test_names_that_are_about_as_near_are_both_suggested() -> None:
    methods = ["rrf", "rrf_v2", "weighted_score"]
    assert did_you_mean("rrf2", methods) == "; did you mean 'rrf' or 'rrf_v2'?"
    assert did_you_mean("rrf_2", methods) == "; did you mean 'rrf_v2'?"
    assert did_you_mean("borda", methods) == ""
