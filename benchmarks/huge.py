"""100,000 queries: one thread and two, and the memory that a process of its own needs; deep lists.

ranx would need about 40 GB there. It gets 12,000 queries, and its time is scaled up linearly.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from dataclasses import replace
from functools import partial
from pathlib import Path

from benchmarks.cases import SIZES, Size, make_case
from benchmarks.engine import MEASURES, fusion_bench_task, ranx_task
from benchmarks.loading import write_files
from benchmarks.synthetic import make_aligned_runs, map_arrays, save_arrays
from benchmarks.timing import Row, median_seconds, peak_gigabytes

TITLE = "100,000 queries (ranx: 12,000 queries, scaled)"
RANX_QUERIES = 12_000
#: The second table: whole commands on deep lists, from text files to the report.
DEEP_TITLE = "Whole commands on deep lists"
DEEP = Size("6,980 × 2 × 1,000", 6_980, 2, 1_000, 1, 2_000)
TUNED = """\
dataset: made
baseline: rrf
systems:
  rrf: {runs: [run0, run1]}
  rrf k=10: {runs: [run0, run1], fusion: {method: rrf, k: 10}}
  convex: {runs: [run0, run1], fusion: convex}
  z-score: {runs: [run0, run1], fusion: {method: weighted_score, normalize: z_score}}
  run0: {runs: [run0]}
  run1: {runs: [run1]}
"""
BATCH = 8
#: Runs a command, and prints its CPU seconds and peak kilobytes. The process that starts a command
#: counts into the command's peak, so a small one starts it.
LAUNCH = """\
import resource, subprocess, sys
subprocess.run(sys.argv[1:], check=True, stdout=subprocess.DEVNULL)
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(used.ru_utime + used.ru_stime, used.ru_maxrss)
"""


def rows(rounds: int, *, toy: bool = False) -> list[Row]:
    """One line for each number of configurations."""
    size, fewer = (SIZES["toy"], 10) if toy else (SIZES["huge"], RANX_QUERIES)
    with tempfile.TemporaryDirectory(prefix="fusion-bench-") as folder:
        save_arrays(make_aligned_runs(size), Path(folder) / "huge")
        memory = _measure_memory(Path(folder) / "huge", toy=toy)
        runs = map_arrays(size, Path(folder) / "huge")
        make_task = partial(fusion_bench_task, runs, list(MEASURES))
        contestants = {
            f"{count} {threads}": make_task(count, threads=threads)
            for count in (1, BATCH)
            for threads in (1, 2)
        }
        smaller = make_case(replace(size, queries=fewer))
        ranx = ranx_task(smaller, list(MEASURES.values()))
        times = median_seconds(contestants | {"ranx": ranx}, min(rounds, 3))
    scaled = times["ranx"] * size.queries / fewer
    return [
        {
            "queries × runs × documents": size.name,
            "configurations at once": str(count),
            "ranx s": scaled,
            "one thread ms": 1000 * times[f"{count} 1"] / count,
            "one thread ratio": scaled / times[f"{count} 1"] * count,
            "two threads ms": 1000 * times[f"{count} 2"] / count,
            "two threads ratio": scaled / times[f"{count} 2"] * count,
            "peak GB": memory,
        }
        for count in (1, BATCH)
    ]


def further_tables(*, toy: bool = False) -> dict[str, list[Row]]:
    """``try`` and ``eval`` on deep lists: processor seconds, and the greatest resident memory."""
    size = SIZES["toy"] if toy else DEEP
    with tempfile.TemporaryDirectory(prefix="fusion-bench-") as name:
        folder = Path(name)
        (data := folder / "datasets/made").mkdir(parents=True)
        write_files(data, str, size)
        (folder / "made.yaml").write_text(TUNED)
        lists = [f"run{s}={data / f'run{s}.trec'}" for s in range(2)]
        words = {"try": [*lists, "--qrels", str(data / "qrels.txt")], "eval": ["made.yaml"]}
        found: list[Row] = []
        for command, given in words.items():
            out = ["--out", str(folder / command)]
            program = [sys.executable, "-m", "fusion_bench", command, *given, *out]
            launch = [sys.executable, "-c", LAUNCH, *program]
            done = subprocess.run(launch, check=True, capture_output=True, text=True, cwd=folder)  # noqa: S603
            seconds, kilobytes = map(float, done.stdout.split())
            found.append(
                {
                    "command": command,
                    "queries × lists × documents": size.name,
                    "CPU s": seconds,
                    "peak GB": kilobytes * 1024 / 1e9,
                }
            )
    return {DEEP_TITLE: found}


def _measure_memory(saved: Path, *, toy: bool) -> float:
    """Peak GB of a process that opens and evaluates, mapped files included."""
    command = [sys.executable, "-m", "benchmarks.huge", str(saved), "toy" if toy else "huge"]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)  # noqa: S603


def _print_peak_memory(saved: Path, size: str) -> None:
    runs = map_arrays(SIZES[size], saved)
    for count in (1, BATCH):
        fusion_bench_task(runs, list(MEASURES), count)(0)
    print(peak_gigabytes())


if __name__ == "__main__":
    _print_peak_memory(Path(sys.argv[1]), sys.argv[2])
