"""100,000 queries: one thread and two, and the memory that a process of its own needs.

ranx would need about 40 GB there, so it is given 12,000 queries and its time is scaled up: its
cost grows linearly at best.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
from dataclasses import replace
from functools import partial
from pathlib import Path

from benchmarks.cases import SIZES, make
from benchmarks.engine import MEASURES, ours, theirs
from benchmarks.synthetic import aligned
from benchmarks.timing import Row, seconds
from fusion_bench.io.aligned_runs_folder import load_aligned_runs, save_aligned_runs

__all__ = ["TITLE", "rows"]

TITLE = "100,000 queries (ranx: 12,000 queries, scaled)"
THEIRS = 12_000
BATCH = 8


def rows(rounds: int, *, toy: bool = False) -> list[Row]:
    """One line for each number of configurations."""
    size, fewer = (SIZES["toy"], 10) if toy else (SIZES["huge"], THEIRS)
    with tempfile.TemporaryDirectory(prefix="fusion-bench-") as folder:
        save_aligned_runs(aligned(size), Path(folder) / "huge")
        memory = _in_a_process_of_its_own(Path(folder) / "huge")
        runs = load_aligned_runs(Path(folder) / "huge")
        run = partial(ours, runs, list(MEASURES))
        contestants = {
            f"{count} {threads}": run(count, threads=threads)
            for count in (1, BATCH)
            for threads in (1, 2)
        }
        smaller = make(replace(size, queries=fewer))
        ranx = theirs(smaller, list(MEASURES.values()))
        taken = seconds(contestants | {"ranx": ranx}, min(rounds, 3))
    scaled = taken["ranx"] * size.queries / fewer
    return [
        {
            "queries × runs × documents": size.name,
            "configurations at once": str(count),
            "ranx s": scaled,
            "one thread ms": 1000 * taken[f"{count} 1"] / count,
            "one thread ratio": scaled / taken[f"{count} 1"] * count,
            "two threads ms": 1000 * taken[f"{count} 2"] / count,
            "two threads ratio": scaled / taken[f"{count} 2"] * count,
            "peak GB": memory,
        }
        for count in (1, BATCH)
    ]


def _in_a_process_of_its_own(saved: Path) -> float:
    """GB that opening and evaluating takes there, mapped files included."""
    command = [sys.executable, "-m", "benchmarks.huge", str(saved)]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)  # noqa: S603


def _measure(saved: Path) -> None:
    runs = load_aligned_runs(saved)
    for count in (1, BATCH):
        ours(runs, list(MEASURES), count)(0)
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9)


if __name__ == "__main__":
    _measure(Path(sys.argv[1]))
