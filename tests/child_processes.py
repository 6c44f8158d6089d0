"""Processes that tests start: whatever a test finds, none of them outlives it."""

import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any


@contextmanager
def running_child(words: Sequence[str], **options: Any) -> Iterator[subprocess.Popen[Any]]:  # noqa: ANN401 - of Popen
    """A process; killed at the end where it has not ended by then.

    Args:
        words: The command.
        options: Those of :class:`subprocess.Popen`.
    """
    with subprocess.Popen(words, **options) as process:
        try:
            yield process
        finally:
            process.kill()


def drop_progress(text: str) -> str:
    """Standard error without the lines of progress, of which a stall of the machine adds some."""
    lines = text.splitlines(keepends=True)
    return "".join(line for line in lines if not line.startswith("progress: "))
