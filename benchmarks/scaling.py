"""Time and memory from a thousand to a million queries: ``python -m benchmarks.scaling``.

Each size runs in a process of its own. More than 100,000 queries are kept on disk in files of so
many, mapped, evaluated and deleted one after another. The data are made by yet another process, so
that neither its time nor its memory counts. ``python -m benchmarks.scaling draw`` only draws again
what was measured.
"""

from __future__ import annotations

import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import TypeAlias

import numpy as np

from benchmarks.cases import SIZES
from benchmarks.engine import BATCH, MEASURES, ours
from benchmarks.synthetic import aligned
from benchmarks.timing import Go, machine
from fusion_bench.io.aligned_runs_folder import load_aligned_runs, save_aligned_runs

HERE = Path(__file__).parent
RESULTS = HERE / "scaling.json"
PICTURE = HERE.parent / "reports/pictures/scaling.png"
QUERIES = (1_000, 3_000, 10_000, 30_000, 100_000, 1_000_000)
CHUNK = 100_000
REPEATS = 3
#: What is measured: seconds, but for the last.
FIRST, AGAIN, BATCHED, MEMORY = "first", "again", f"each of {BATCH}", "memory"
LABELS = {
    FIRST: "one configuration, the first (layout included)",
    AGAIN: "one configuration, any later one",
    BATCHED: f"one configuration of {BATCH} at once",
    MEMORY: "peak memory, mapped files included",
}

#: Lines are told apart by their marks as well.
MARKS = {FIRST: "o", AGAIN: "s", BATCHED: "^", MEMORY: "o"}

Point: TypeAlias = dict[str, float]


def measure(queries: int) -> Point:
    """One size, in this process."""
    total = dict.fromkeys((FIRST, AGAIN, BATCHED), 0.0)
    with tempfile.TemporaryDirectory(prefix="fusion-bench-") as place:
        for seed, start in enumerate(range(0, queries, CHUNK)):
            saved = Path(place) / str(seed)
            _run("make", min(CHUNK, queries - start), seed, saved)
            for name, taken in _chunk(saved).items():
                total[name] += taken
            saved.unlink()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return {"queries": queries} | total | {MEMORY: float(peak)}


def _chunk(saved: Path) -> Point:
    runs = load_aligned_runs(saved)
    one, many = (ours(runs, list(MEASURES), count, threads=1) for count in (1, BATCH))
    again = [_seconds(one, turn) for turn in range(REPEATS + 1)]
    return {
        FIRST: again[0],
        AGAIN: statistics.median(again[1:]),
        BATCHED: _seconds(many, REPEATS + 1) / BATCH,
    }


def _seconds(go: Go, turn: int) -> float:
    started = time.process_time()  # one thread, whatever else the machine does
    go(turn)
    return time.process_time() - started


def make(queries: int, seed: int, place: Path) -> None:
    """Some queries of the collection, on disk."""
    save_aligned_runs(aligned(replace(SIZES["huge"], queries=queries), seed), place)


def _run(*arguments: object) -> str:
    command = [sys.executable, "-m", "benchmarks.scaling", *map(str, arguments)]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout  # noqa: S603


def slope(points: list[Point], what: str) -> float:
    """By least squares, both axes logarithmic: 1 = proportional to the number of queries."""
    queries = np.log([point["queries"] for point in points])
    return float(np.polyfit(queries, np.log([point[what] for point in points]), 1)[0])


def draw(points: list[Point]) -> None:
    """Time and memory over the number of queries."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 4.6), layout="constrained")
    left, right = figure.subplots(1, 2)
    for what, label in LABELS.items():
        axes, scale = (right, 1e9) if what == MEMORY else (left, 1.0)
        values = [point[what] / scale for point in points]
        # Memory stops growing where queries are worked off in chunks: one slope says nothing.
        shown = label if what == MEMORY else f"{label}: slope {slope(points, what):.2f}"
        queries = [point["queries"] for point in points]
        axes.plot(queries, values, marker=MARKS[what], label=shown)
    for axes, unit in ((left, "CPU seconds, one thread"), (right, "GB")):
        axes.set(xscale="log", yscale="log", xlabel="queries × 4 lists × 100 documents")
        axes.set_ylabel(unit)
        axes.grid(which="major", alpha=0.3)
        axes.set_title("Time" if axes is left else "Memory", loc="left")
        axes.legend(fontsize=8, loc="upper left", bbox_to_anchor=(0, -0.14), frameon=False)
    PICTURE.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(PICTURE, dpi=110)


def main() -> None:
    """Measure every size, print the table, keep it and draw it."""
    points: list[Point] = []
    for queries in QUERIES:
        points.append(json.loads(_run("measure", queries)))
        shown = ", ".join(f"{what} {points[-1][what]:.4g}" for what in LABELS)
        print(f"{queries:>9,}: {shown}", flush=True)
    slopes = {what: slope(points, what) for what in LABELS}
    text = {"machine": machine(), "points": points, "slopes": slopes}
    RESULTS.write_text(json.dumps(text, indent=2) + "\n", encoding="utf-8")
    draw(points)
    print("slopes: " + ", ".join(f"{what} {value:.2f}" for what, value in slopes.items()))


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["make", queries, seed, place]:
            make(int(queries), int(seed), Path(place))
        case ["measure", queries]:
            print(json.dumps(measure(int(queries))))
        case ["draw"]:
            draw(json.loads(RESULTS.read_text(encoding="utf-8"))["points"])
        case _:
            main()
