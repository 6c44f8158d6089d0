"""Time and memory from a thousand to a million queries: ``python -m benchmarks.scaling``.

Each size runs in its own process. Queries are stored in files of at most 100,000, which are mapped,
evaluated and deleted one after another. Another process makes the data, so that neither its time
nor its memory counts. ``python -m benchmarks.scaling draw`` draws the stored figures again.
"""

from __future__ import annotations

import json
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypeAlias

import numpy as np

from benchmarks.cases import SIZES
from benchmarks.engine import BATCH, MEASURES, fusion_bench_task
from benchmarks.synthetic import make_aligned_runs, map_arrays, save_arrays
from benchmarks.timing import Task, describe_machine

HERE = Path(__file__).parent
RESULTS = HERE / "scaling.json"
PICTURE = HERE.parent / "reports/pictures/scaling.png"
QUERIES = (1_000, 3_000, 10_000, 30_000, 100_000, 1_000_000)
TOY_QUERIES = (10, 20)
CHUNK = 100_000
REPEATS = 3
#: The figures of a point: seconds, and bytes of memory.
FIRST, AGAIN, BATCHED, MEMORY = "first", "again", f"each of {BATCH}", "memory"
LABELS = {
    FIRST: "one configuration, the first (layout included)",
    AGAIN: "one configuration, any later one",
    BATCHED: f"one configuration of {BATCH} at once",
    MEMORY: "peak memory, mapped files included",
}

MARKS = {FIRST: "o", AGAIN: "s", BATCHED: "^", MEMORY: "o"}

Point: TypeAlias = dict[str, float]


def measure_size(queries: int) -> Point:
    """One size, in this process."""
    total = dict.fromkeys((FIRST, AGAIN, BATCHED), 0.0)
    with tempfile.TemporaryDirectory(prefix="fusion-bench-") as place:
        for seed, start in enumerate(range(0, queries, CHUNK)):
            saved = Path(place) / str(seed)
            count = min(CHUNK, queries - start)
            _run_process("make", count, seed, saved)
            for name, seconds in _measure_chunk(saved, count).items():
                total[name] += seconds
            shutil.rmtree(saved)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return {"queries": queries} | total | {MEMORY: float(peak)}


def _measure_chunk(saved: Path, queries: int) -> Point:
    runs = map_arrays(replace(SIZES["huge"], queries=queries), saved)
    single, batched = (
        fusion_bench_task(runs, list(MEASURES), count, threads=1) for count in (1, BATCH)
    )
    again = [_cpu_seconds(single, turn) for turn in range(REPEATS + 1)]
    return {
        FIRST: again[0],
        AGAIN: statistics.median(again[1:]),
        BATCHED: _cpu_seconds(batched, REPEATS + 1) / BATCH,
    }


def _cpu_seconds(task: Task, turn: int) -> float:
    started = time.process_time()
    task(turn)
    return time.process_time() - started


def make_chunk(queries: int, seed: int, place: Path) -> None:
    """Some queries of the collection, on disk."""
    save_arrays(make_aligned_runs(replace(SIZES["huge"], queries=queries), seed), place)


def _run_process(*arguments: object) -> str:
    command = [sys.executable, "-m", "benchmarks.scaling", *map(str, arguments)]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout  # noqa: S603


def fit_slope(points: list[Point], what: str) -> float:
    """Slope by least squares in logarithms: 1 = proportional to the number of queries."""
    queries = np.log([point["queries"] for point in points])
    return float(np.polyfit(queries, np.log([point[what] for point in points]), 1)[0])


def draw_points(points: list[Point], path: Path) -> None:
    """Draw time and memory over the number of queries."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 4.6), layout="constrained")
    left, right = figure.subplots(1, 2)
    for what, label in LABELS.items():
        axes, scale = (right, 1e9) if what == MEMORY else (left, 1.0)
        values = [point[what] / scale for point in points]
        # Memory stops growing at the size of a chunk: no slope.
        text = label if what == MEMORY else f"{label}: slope {fit_slope(points, what):.2f}"
        queries = [point["queries"] for point in points]
        axes.plot(queries, values, marker=MARKS[what], label=text)
    for axes, unit in ((left, "CPU seconds, one thread"), (right, "GB")):
        axes.set(xscale="log", yscale="log", xlabel="queries × 4 lists × 100 documents")
        axes.set_ylabel(unit)
        axes.grid(which="major", alpha=0.3)
        axes.set_title("Time" if axes is left else "Memory", loc="left")
        axes.legend(fontsize=8, loc="upper left", bbox_to_anchor=(0, -0.14), frameon=False)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)


def measure_all(sizes: Sequence[int]) -> list[Point]:
    """Measure every size and print its figures."""
    points: list[Point] = []
    for queries in sizes:
        points.append(json.loads(_run_process("measure", queries)))
        figures = ", ".join(f"{what} {points[-1][what]:.4g}" for what in LABELS)
        print(f"{queries:>9,}: {figures}", flush=True)
    return points


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure every size, print the table, store it and draw it."""
    match sys.argv[1:] if arguments is None else list(arguments):
        case ["make", queries, seed, place]:
            make_chunk(int(queries), int(seed), Path(place))
        case ["measure", queries]:
            print(json.dumps(measure_size(int(queries))))
        case ["draw"]:
            draw_points(json.loads(RESULTS.read_text(encoding="utf-8"))["points"], PICTURE)
        case ["--toy"]:
            with tempfile.TemporaryDirectory(prefix="fusion-bench-") as folder:
                draw_points(measure_all(TOY_QUERIES), Path(folder) / "scaling.png")
        case []:
            points = measure_all(QUERIES)
            slopes = {what: fit_slope(points, what) for what in LABELS}
            record = {"machine": describe_machine(), "points": points, "slopes": slopes}
            RESULTS.write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")
            draw_points(points, PICTURE)
            print("slopes: " + ", ".join(f"{name} {value:.2f}" for name, value in slopes.items()))
        case _:
            raise SystemExit("usage: python -m benchmarks.scaling [draw | --toy]")


if __name__ == "__main__":
    main()
