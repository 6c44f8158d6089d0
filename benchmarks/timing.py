"""Contestants timed in turns, so that whatever else the machine does meets all of them."""

from __future__ import annotations

import os
import platform
import statistics
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeAlias

__all__ = ["Go", "Row", "machine", "seconds"]

#: Called with the number of the turn, so that no two turns ask for the same.
Go: TypeAlias = Callable[[int], object]
#: A line of a table: its cells by column. A column ends in its unit: ms, s, GB or ratio.
Row: TypeAlias = dict[str, float | str]


def seconds(contestants: Mapping[str, Go], rounds: int) -> dict[str, float]:
    """Median wall-clock seconds of each, taken in turns; the first turn is dropped."""
    taken: dict[str, list[float]] = {name: [] for name in contestants}
    for turn in range(rounds + 1):
        for name, go in contestants.items():
            started = time.perf_counter()
            go(turn)
            taken[name].append(time.perf_counter() - started)
    return {name: statistics.median(times[1:]) for name, times in taken.items()}


def machine() -> str:
    """What the figures were taken on."""
    cpuinfo = Path("/proc/cpuinfo")
    lines = cpuinfo.read_text().splitlines() if cpuinfo.exists() else []
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    model = models[0] if models else platform.machine()
    return f"{os.cpu_count()} × {model}, Python {platform.python_version()}"
