"""What ``fusion-bench --help`` takes before anything happens, beside a Python that does nothing."""

from __future__ import annotations

import os
import pty
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from benchmarks.timing import Row

__all__ = ["TITLE", "rows"]

TITLE = "Starting"
#: Starts of each in a round.
TIMES = 5


def piped(*command: str) -> None:
    """Run with the output into a pipe, as a script would."""
    subprocess.run(command, check=True, capture_output=True)  # noqa: S603 - ours


def on_terminal(*command: str) -> None:
    """Run on a terminal, where help has colours."""
    ours, theirs = pty.openpty()
    child = subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs)  # noqa: S603 - ours
    os.close(theirs)
    try:
        while os.read(ours, 65536):
            pass
    except OSError:  # the child has closed its end
        pass
    os.close(ours)
    if child.wait():
        raise subprocess.CalledProcessError(child.returncode, command)


def cpu(start: Callable[..., None], *command: str) -> float:
    """Processor seconds of a child process."""

    def spent() -> float:
        usage = resource.getrusage(resource.RUSAGE_CHILDREN)
        return usage.ru_utime + usage.ru_stime

    before = spent()
    start(*command)
    return spent() - before


def rows(rounds: int, *, toy: bool = False) -> list[Row]:
    """Least processor time of each, in turns: the least is what noise cannot lower."""
    ours = str(Path(sys.executable).with_name("fusion-bench"))
    starts: dict[str, tuple[Callable[..., None], tuple[str, ...]]] = {
        "python -c pass": (piped, (sys.executable, "-c", "pass")),
        "fusion-bench --help, into a pipe": (piped, (ours, "--help")),
        "fusion-bench --help, on a terminal": (on_terminal, (ours, "--help")),
    }
    least = dict.fromkeys(starts, float("inf"))
    for _ in range(rounds if toy else rounds * TIMES):
        for name, (start, command) in starts.items():
            least[name] = min(least[name], cpu(start, *command))
    bare = least["python -c pass"]
    return [
        {"command": name, "processor ms": 1000 * spent, "times a bare Python": spent / bare}
        for name, spent in least.items()
    ]
