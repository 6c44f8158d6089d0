"""Ctrl-C and SIGTERM, from the command line's first line to its last.

While a command runs, both raise an exception, so that it can finish its files and end its workers.
Before and after, nothing is under way, and both end the process at once.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from collections.abc import Iterator
from types import FrameType
from typing import Final, NoReturn

#: Signal → what the error says.
WORDS: Final = {signal.SIGINT: "interrupted", signal.SIGTERM: "terminated"}
#: Seconds after SIGTERM within which a command ends by itself.
PATIENCE: Final = 1.0


class TerminatedError(SystemExit):
    """SIGTERM ended a command."""


#: What ends a command from outside, and no code of a user may hold up.
ENDS: Final = (KeyboardInterrupt, TerminatedError)


class SignalHandlers:
    """The handlers of this process."""

    def __init__(self) -> None:
        self._is_installed = self._is_reported = False

    def install(self) -> None:
        """From now on Ctrl-C and SIGTERM end the process with one line, and 130 or 143."""
        self._is_installed = True
        self._handle(self._exit, self._exit)

    @contextlib.contextmanager
    def raise_in_command(self) -> Iterator[None]:
        """Raise KeyboardInterrupt and SystemExit instead while a command runs.

        Without :meth:`install`, nothing changes.
        """
        if not self._is_installed:
            yield
            return
        try:
            self._handle(signal.default_int_handler, self._raise_exit)
            yield
        except BaseException:
            self._is_reported = True  # or will be, by whoever handles it
            raise
        finally:
            self._handle(self._exit, self._exit)

    def _handle(self, interrupt: signal._HANDLER, terminate: signal._HANDLER) -> None:
        for number, handler in ((signal.SIGINT, interrupt), (signal.SIGTERM, terminate)):
            if signal.getsignal(number) != signal.SIG_IGN:  # a shell's job in the background
                signal.signal(number, handler)

    def _raise_exit(self, number: int, _frame: FrameType | None) -> NoReturn:
        import logging
        import threading

        signal.signal(number, self._exit)
        sys.unraisablehook = _ignore_unraisable  # of objects that are only half made
        logging.getLogger("asyncio").disabled = True  # of tasks that end with the loop
        self._report(number)
        end = threading.Timer(PATIENCE, os._exit, (exit_code(number),))
        end.daemon = True
        end.start()
        raise TerminatedError(exit_code(number))

    def _exit(self, number: int, _frame: FrameType | None) -> NoReturn:
        self._report(number)
        os._exit(exit_code(number))

    def _report(self, number: int) -> None:
        """Print an error once, by a call that may interrupt any other output."""
        if not self._is_reported:
            self._is_reported = True
            report_signal(number)


def _ignore_unraisable(_error: object) -> None:
    """Print nothing: the one line about the signal says why the process ends."""


def exit_code(number: int) -> int:
    """The exit code of a process that a signal ended, as shells compute it."""
    return 128 + number


def report_signal(number: int) -> None:
    """Print one line: an error, as every command prints it."""
    word = WORDS[signal.Signals(number)]
    line, stream = f"error: {word}\n", 2
    if "--json" in sys.argv:
        line = f'{{"error": {{"file": null, "line": null, "message": "{word}"}}}}\n'
        stream = 1
    with contextlib.suppress(OSError):
        os.write(stream, line.encode())


#: Those of this process.
handlers: Final = SignalHandlers()
