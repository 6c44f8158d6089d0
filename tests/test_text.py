"""Names from anywhere, written and shown."""

from __future__ import annotations

from fusion_bench.text import is_text, shown


def test_names_are_shown_without_control_characters() -> None:
    assert shown("a\nb\x1b[31m\u202e\xa0\udc00é 中") == "a\\nb\\x1b[31m\\u202e\\xa0\\udc00é 中"
    assert shown(shown("a\nb")) == "a\\nb"


def test_half_a_surrogate_pair_is_no_text() -> None:
    assert is_text("plain")
    assert is_text("🙂 ü")
    assert not is_text("a\udc00")
