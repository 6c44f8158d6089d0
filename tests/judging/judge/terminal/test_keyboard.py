"""Keys as terminals send them, through a pipe."""

from __future__ import annotations

import os
import select
from collections.abc import Iterator

import pytest

from fusion_bench.judging.terminal import Keyboard


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    own, other = os.pipe()
    yield own, other
    os.close(own)


def test_keys_of_one_read(pipe: tuple[int, int]) -> None:
    own, other = pipe
    os.write(other, "1\x1b[6~é\x1b[15~\r\x7fq\x1b".encode())
    os.close(other)
    keyboard = Keyboard(own)
    keys = [keyboard.read_key() for _ in range(9)]
    assert keys == ["1", "page down", "é", "\x1b[15~", "enter", "backspace", "q", "escape", "end"]


def test_the_digits_of_a_split_sequence_are_no_grades(
    pipe: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A slow line may deliver a key byte by byte, and a letter by halves."""
    parts = iter([b"\x1b", b"[", b"3", b"~2", b"\xc3", b"\xa9"])
    monkeypatch.setattr(os, "read", lambda *_: next(parts))
    monkeypatch.setattr(select, "select", lambda *_: ([0], [], []))
    keyboard = Keyboard(pipe[0])
    assert [keyboard.read_key() for _ in range(3)] == ["\x1b[3~", "2", "é"]


def test_escape_alone_is_escape(pipe: tuple[int, int]) -> None:
    own, other = pipe
    os.write(other, b"\x1b")
    assert Keyboard(own).read_key() == "escape"
    os.close(other)
