"""Contestants timed in turns, so that other load on the machine slows all of them alike."""

from __future__ import annotations

import os
import platform
import re
import statistics
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeAlias

#: Called with the number of the turn, so that no two turns repeat the same work.
Task: TypeAlias = Callable[[int], object]
#: A line of a table: its cells by column. A column ends in its unit: µs, ms, s, GB or ratio.
Row: TypeAlias = dict[str, float | str]


def median_seconds(contestants: Mapping[str, Task], rounds: int) -> dict[str, float]:
    """Median wall-clock seconds of each, taken in turns; the first turn is dropped."""
    times: dict[str, list[float]] = {name: [] for name in contestants}
    for turn in range(rounds + 1):
        for name, task in contestants.items():
            started = time.perf_counter()
            task(turn)
            times[name].append(time.perf_counter() - started)
    return {name: statistics.median(durations[1:]) for name, durations in times.items()}


def describe_machine() -> str:
    """Processors and Python version."""
    cpuinfo = Path("/proc/cpuinfo")
    lines = cpuinfo.read_text().splitlines() if cpuinfo.exists() else []
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    model = models[0] if models else platform.machine()
    return f"{os.cpu_count()} × {model}, Python {platform.python_version()}"


def peak_gigabytes() -> float:
    """The peak memory of this process; getrusage would count the parent's before exec as well."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return int(re.findall(r"VmHWM:\s+(\d+) kB", status)[0]) * 1024 / 1e9
