"""Calls of blocking libraries: what they raise, and how long they take."""

from __future__ import annotations

import asyncio
from threading import Event

import pytest

from fusion_bench.engines.connectors._sessions import LONGEST_MESSAGE, call_library
from fusion_bench.errors import ConfigError, ProviderError


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
