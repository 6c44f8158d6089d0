"""Single keys of a POSIX terminal."""

from __future__ import annotations

import codecs
import os
import re
import select
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from fusion_bench.errors import FusionBenchError

#: The keys that have names of their own, as bytes of a terminal.
NAMES: Final = {
    "\x1b[5~": "page up",
    "\x1b[6~": "page down",
    "\x1b[A": "up",
    "\x1b[B": "down",
    "\r": "enter",
    "\n": "enter",
    "\x7f": "backspace",
    "\x08": "backspace",
    "\x1b": "escape",
    "\x04": "end",
    "": "end",
}
#: What a key without a character sends, as ECMA-48 and xterm have it.
SEQUENCE: Final = re.compile(r"\x1b(?:\[[0-9;?]*[A-Za-z~]|O[A-Za-z])?")
#: The beginning of one: the rest may come with the next bytes, and holds digits.
BEGINNING: Final = re.compile(r"\x1b(?:\[[0-9;?]*|O)?")
#: Seconds to wait for the rest, so that Escape alone is known as such.
SEQUENCE_SECONDS: Final = 0.1
#: Bytes that are read at once: the sequence of a key, or what was pasted.
MOST_BYTES: Final = 1024


class Keyboard:
    """Keys as they are pressed, without echo.

    Args:
        descriptor: Of a terminal in cbreak mode; see :func:`open_keyboard`.
    """

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="ignore")
        self._pending = ""

    def read_key(self) -> str:
        """The next key: a character, or a name of :data:`NAMES`; ``end`` = no more will come."""
        while not self._pending:
            if not self._read_more():
                return NAMES[""]
        while BEGINNING.fullmatch(self._pending):
            ready, _, _ = select.select([self._descriptor], [], [], SEQUENCE_SECONDS)
            if not ready or not self._read_more():
                break
        sequence = SEQUENCE.match(self._pending)
        key = self._pending[0] if sequence is None else sequence[0]
        self._pending = self._pending[len(key) :]
        return NAMES.get(key, key)

    def _read_more(self) -> bool:
        """Wait for bytes; False = no more will come."""
        data = os.read(self._descriptor, MOST_BYTES)
        self._pending += self._decoder.decode(data)
        return bool(data)


@contextmanager
def open_keyboard(descriptor: int) -> Iterator[Keyboard]:
    """Read single keys while the context lasts; the terminal is as it was afterwards.

    Raises:
        FusionBenchError: This system has no such terminals.
    """
    try:
        import termios
        import tty
    except ImportError:  # pragma: no cover - not on POSIX systems
        raise FusionBenchError(
            "this system's terminal gives no single keys: judge in a spreadsheet with "
            "--export FILE and --import FILE"
        ) from None
    before = termios.tcgetattr(descriptor)
    try:
        tty.setcbreak(descriptor)
        yield Keyboard(descriptor)
    finally:
        termios.tcsetattr(descriptor, termios.TCSADRAIN, before)
