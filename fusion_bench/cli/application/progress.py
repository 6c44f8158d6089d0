"""Progress of long work: a bar on a terminal, lines elsewhere."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar

from fusion_bench.util.formatting import Progress, escape_control_chars

#: Seconds between two lines; shorter work prints none.
LINE_INTERVAL = 10.0


class ProgressLines:
    """The stage that a command has reached, printed at intervals.

    Args:
        stage: What is shown until the first stage is known.
        interval: Seconds between two lines.
    """

    def __init__(self, stage: str, interval: float) -> None:
        self.interval = interval
        self._started = time.monotonic()
        self._stage = stage
        self._finished = threading.Event()

    def update(self, stage: str, done: int, total: int) -> None:
        """Note the stage, the steps done and all steps; the next line shows them."""
        self._stage = f"{stage}, {done} of {total}" if total > 1 else stage

    def print_lines(self) -> None:
        """Print until :meth:`finish`."""
        while not self._finished.wait(self.interval):
            seconds = time.monotonic() - self._started
            line = escape_control_chars(f"progress: {self._stage}, {seconds:.0f} s")
            with suppress(OSError, ValueError):  # nobody reads standard error, or it is closed
                print(line, file=sys.stderr, flush=True)  # noqa: T201

    def finish(self) -> None:
        """End the printing."""
        self._finished.set()


_LINES: ContextVar[ProgressLines | None] = ContextVar("progress lines", default=None)


@contextmanager
def progress_lines(command: str, interval: float | None = None) -> Iterator[None]:
    """Print a command's progress while the context lasts, unless standard error is a terminal.

    Args:
        command: What is shown until the first stage is known.
        interval: Seconds between two lines; None = :data:`LINE_INTERVAL`.
    """
    if sys.stderr is None or sys.stderr.isatty():
        yield
        return
    lines = ProgressLines(command, LINE_INTERVAL if interval is None else interval)
    token = _LINES.set(lines)
    thread = threading.Thread(target=lines.print_lines, name="progress lines", daemon=True)
    thread.start()
    try:
        yield
    finally:
        lines.finish()
        thread.join(timeout=1)  # a pipe that nobody reads may block it
        _LINES.reset(token)


def update_lines(stage: str, done: int, total: int) -> None:
    """Note what a command does now, for the lines that it prints, if any."""
    lines = _LINES.get()
    if lines is not None:
        lines.update(stage, done, total)


def end_lines() -> None:
    """Print no further line: the command has started, and waits to be asked."""
    lines = _LINES.get()
    if lines is not None:
        lines.finish()


#: Seconds before the bar appears.
SECONDS_BEFORE_BAR = 2.0


@contextmanager
def progress_bar() -> Iterator[Progress]:
    """A callback that draws on standard error once the work has taken two seconds.

    Nothing stays behind. Where standard error is not a terminal, the command prints lines instead.
    """
    if not sys.stderr.isatty():
        yield update_lines
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    bar = Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TimeElapsedColumn(),
        console=Console(stderr=True),
        transient=True,
    )
    task = bar.add_task("", total=None)
    started = time.monotonic()

    def update_bar(stage: str, done: int, total: int) -> None:
        description = f"{stage}, {done:,} of {total:,}" if total > 1 else stage
        bar.update(task, description=description, completed=done, total=total)
        if time.monotonic() - started > SECONDS_BEFORE_BAR:
            bar.start()

    try:
        yield update_bar
    finally:
        bar.stop()
