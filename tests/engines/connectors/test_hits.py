"""Hits of an answer, and calls of libraries."""

from __future__ import annotations

import asyncio
import math
from threading import Event

import pytest

from fusion_bench.engines.connectors import Hit, check_hits, make_hit
from fusion_bench.engines.connectors._sessions import LONGEST_MESSAGE, call_library
from fusion_bench.errors import ConfigError, ProviderError


def test_values_that_an_engine_sends_become_a_hit() -> None:
    assert make_hit(7, 1) == Hit("7", 1.0)
    assert make_hit("ä b", -0.5, "text\ud800") == Hit("ä b", -0.5, "text?")


@pytest.mark.parametrize(
    ("document", "problem"),
    [
        (None, "without an id"),
        ("", "without an id"),
        (" \t", "without an id"),
        (True, "without an id"),
        (1.5, "without an id"),
        (["a"], "without an id"),
        ("a\x00b", "control character"),
        ("a\nb", "control character"),
        ("a\x1b[31m", "control character"),
        ("a\ud800", "control character"),
        ("a\u2028b", "control character"),
        ("x" * 1001, "more than 1,000 characters"),
    ],
)
def test_an_id_that_cannot_be_stored_is_refused(document: object, problem: str) -> None:
    with pytest.raises(ProviderError, match=problem) as caught:
        make_hit(document, 1.0)
    assert caught.value.kind == "malformed"


@pytest.mark.parametrize("score", [math.nan, math.inf, -math.inf, "1", None, True, [1], 10**400])
def test_a_score_that_is_no_finite_number_is_refused(score: object) -> None:
    with pytest.raises(ProviderError, match="no finite number"):
        make_hit("d", score)


@pytest.mark.parametrize("text", [1, ["a"], "x" * 1_000_001])
def test_a_text_that_is_none_or_too_long_is_refused(text: object) -> None:
    with pytest.raises(ProviderError, match="the text of 'd'"):
        make_hit("d", 1.0, text)


def test_hits_beyond_the_depth_are_dropped() -> None:
    hits = [Hit("a", 2.0), Hit("b", 1.0), Hit("a", math.nan)]
    assert check_hits(hits, 2) == tuple(hits[:2])


@pytest.mark.parametrize(
    ("hits", "problem"),
    [
        ([Hit("a", 1.0), Hit("a", 0.5)], "'a' stands twice"),
        ([Hit("a", math.nan)], "no finite number"),
        ([("a", 1.0)], "a tuple in place"),
        (None, "list of hits"),
        ("ab", "list of hits"),
        ({"a": 1.0}, "list of hits"),
    ],
)
def test_an_answer_that_breaks_a_rule_is_malformed(hits: object, problem: str) -> None:
    with pytest.raises(ProviderError, match=problem) as caught:
        check_hits(hits, 10)
    assert caught.value.kind == "malformed"


def test_an_answer_comes_back() -> None:
    assert asyncio.run(call_library("Engine", lambda: 3, timeout=60)) == 3


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (RuntimeError("broken\n  at line 3"), "Engine: broken at line 3"),
        (KeyError(), "Engine: KeyError"),
        (ValueError("x" * 1000), f"Engine: {'x' * LONGEST_MESSAGE}"),
    ],
)
def test_whatever_a_library_raises_is_one_line(error: Exception, message: str) -> None:
    def fail() -> None:
        raise error

    with pytest.raises(ProviderError) as caught:
        asyncio.run(call_library("Engine", fail, timeout=60))
    assert str(caught.value) == message
    assert caught.value.kind == "refused"


def test_our_own_errors_pass() -> None:
    def fail() -> None:
        raise ConfigError("text_field is needed")

    with pytest.raises(ConfigError, match=r"^text_field is needed$"):
        asyncio.run(call_library("Engine", fail, timeout=60))


def test_a_call_that_takes_too_long_is_no_longer_waited_for() -> None:
    release = Event()

    async def ask() -> None:
        with pytest.raises(ProviderError, match=r"within 0\.01 seconds") as caught:
            await call_library("Engine", lambda: release.wait(60), timeout=0.01)
        assert caught.value.kind == "timeout"
        release.set()

    asyncio.run(ask())
