"""Reading and aligning four runs, against ``pytrec_eval.parse_run``, which only parses them.

Rounds are interleaved and the first is dropped; medians are compared. CPU seconds are those of all
threads. Memory is the peak of a process that does nothing else.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Final

import numpy as np

from benchmarks.cases import SIZES, Size
from benchmarks.timing import Row, peak_gigabytes
from fusion_bench.io.dataset import load_dataset
from fusion_bench.io.dataset_cache import FOLDER, Cache

TITLE = "Loading four runs of 698,000 lines"
#: How a document is named by its number.
NAMES: Final[dict[str, Callable[[int], str]]] = {
    "numbers": str,
    "long": lambda d: f"clueweb09-en{d // 60_000:04d}-{d // 600 % 100:02d}-{d % 60_000:05d}",
    "URLs": lambda d: f"https://www.example{d % 977}.com/articles/{d // 100}/title-{d:08d}.html",
}
CORPUS: Final = 8_841_823
#: Seconds until a file that was just written is old enough for the cache to trust its times.
SETTLE: Final = 3.5


def write_files(folder: Path, name: Callable[[int], str], size: Size) -> Path:
    """The runs, the judgments and the ``dataset.yaml`` of one synthetic collection."""
    rng = np.random.default_rng(0)
    hidden = rng.normal(size=(size.queries, size.pool)).astype(np.float32)
    queries = rng.choice(1_200_000, size.queries, replace=False).tolist()
    pools = [rng.choice(CORPUS, size.pool, replace=False) for _ in queries]
    relevant = (f"{q} 0 {name(int(pool[0]))} 1\n" for q, pool in zip(queries, pools, strict=True))
    (folder / "qrels.txt").write_text("".join(relevant))
    for s in range(size.runs):
        noisy = hidden + rng.normal(size=hidden.shape).astype(np.float32)
        best = np.argsort(-noisy, axis=1)[:, : size.depth]
        with (folder / f"run{s}.trec").open("w") as file:
            for q, query in enumerate(queries):
                ranked = zip(pools[q][best[q]].tolist(), noisy[q, best[q]].tolist(), strict=True)
                file.writelines(
                    f"{query} Q0 {name(document)} {rank} {20 + 4 * score:.6f} run{s}\n"
                    for rank, (document, score) in enumerate(ranked, start=1)
                )
    listed = "".join(f"  run{s}: {{path: run{s}.trec}}\n" for s in range(size.runs))
    path = folder / "dataset.yaml"
    path.write_text(f"name: made\nqrels: qrels.txt\nruns:\n{listed}")
    return path


def load_and_align(path: Path, *, cache: bool | Cache) -> object:
    """Read, check and align with fusion_bench."""
    dataset = load_dataset(path, cache=cache)
    return dataset.aligned(list(dataset.runs))


def parse_runs(path: Path) -> object:
    """Parse each run with ``pytrec_eval``."""
    import pytrec_eval

    tables = []
    for run in sorted(path.parent.glob("*.trec")):
        with run.open() as file:
            tables.append(pytrec_eval.parse_run(file))
    return tables


def median_cpu_seconds(
    contestants: Mapping[str, Callable[[], object]], rounds: int
) -> dict[str, float]:
    """Median CPU seconds of each, taken in turns; the first turn is dropped."""
    seconds: dict[str, list[float]] = {name: [] for name in contestants}
    for _ in range(rounds + 1):
        for name, run in contestants.items():
            started = time.process_time()
            result = run()
            seconds[name].append(time.process_time() - started)
            del result
    return {name: statistics.median(turns[1:]) for name, turns in seconds.items()}


def measure_peak(path: Path) -> float:
    """GB at the peak of a process that reads and aligns once."""
    command = [sys.executable, "-m", "benchmarks.loading", str(path)]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)  # noqa: S603


def rows(rounds: int, *, toy: bool = False) -> Iterator[Row]:
    """One row a kind of ids."""
    size = replace(SIZES["many"], queries=6) if toy else SIZES["many"]
    for kind, name in NAMES.items():
        with tempfile.TemporaryDirectory() as folder:
            path = write_files(Path(folder), name, size)
            text = sum(file.stat().st_size for file in path.parent.iterdir())
            contestants = {
                "fusion_bench": partial(load_and_align, path, cache=False),
                "pytrec_eval": partial(parse_runs, path),
            }
            seconds = median_cpu_seconds(contestants, rounds)
            peak = measure_peak(path)
            cache = Cache(path.parent / FOLDER, max_bytes=3 * text)
            reopen = partial(load_and_align, path, cache=cache)
            reopen()
            time.sleep(0 if toy else SETTLE)
            reopen()
            reopened = median_cpu_seconds({"reopen": reopen}, 4 * rounds)["reopen"]
            stored = sum(file.stat().st_size for file in path.parent.rglob("*.npy"))
        yield {
            "ids": kind,
            "read and aligned CPU s": seconds["fusion_bench"],
            "pytrec_eval parses CPU s": seconds["pytrec_eval"],
            "CPU / pytrec_eval": seconds["fusion_bench"] / seconds["pytrec_eval"],
            "peak GB": peak,
            "reopened CPU ms": 1000 * reopened,
            "reopened / read": reopened / seconds["fusion_bench"],
            "cache / text": stored / text,
        }


if __name__ == "__main__":
    load_and_align(Path(sys.argv[1]), cache=False)
    print(peak_gigabytes())
