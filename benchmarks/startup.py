"""Processor time of ``fusion-bench --help``, beside a Python that does nothing."""

from __future__ import annotations

import os
import pty
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from benchmarks.timing import Row

TITLE = "Starting"
#: Starts of each in a round.
TIMES = 5


def run_piped(*command: str) -> None:
    """Run with the output into a pipe, as a script would; compiled modules are kept."""
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": ""}
    subprocess.run(command, check=True, capture_output=True, env=environment)  # noqa: S603


def run_on_terminal(*command: str) -> None:
    """Run on a terminal, where help has colors."""
    leader, follower = pty.openpty()
    child = subprocess.Popen(command, stdin=follower, stdout=follower, stderr=follower)  # noqa: S603
    os.close(follower)
    try:
        while os.read(leader, 65536):
            pass
    except OSError:  # the child has closed its end
        pass
    os.close(leader)
    if child.wait():
        raise subprocess.CalledProcessError(child.returncode, command)


def cpu_seconds(start: Callable[..., None], *command: str) -> float:
    """Processor seconds of a child process."""

    def total() -> float:
        usage = resource.getrusage(resource.RUSAGE_CHILDREN)
        return usage.ru_utime + usage.ru_stime

    before = total()
    start(*command)
    return total() - before


def rows(rounds: int, *, toy: bool = False) -> list[Row]:
    """Least processor time of each, taken in turns: noise can only add to it."""
    program = str(Path(sys.executable).with_name("fusion-bench"))
    starts: dict[str, tuple[Callable[..., None], tuple[str, ...]]] = {
        "python -c pass": (run_piped, (sys.executable, "-c", "pass")),
        "fusion-bench --help, into a pipe": (run_piped, (program, "--help")),
        "fusion-bench --help, on a terminal": (run_on_terminal, (program, "--help")),
    }
    least = dict.fromkeys(starts, float("inf"))
    for _ in range(rounds if toy else rounds * TIMES):
        for name, (start, command) in starts.items():
            least[name] = min(least[name], cpu_seconds(start, *command))
    bare = least["python -c pass"]
    return [
        {"command": name, "processor ms": 1000 * spent, "times a bare Python": spent / bare}
        for name, spent in least.items()
    ]
