"""Reading four runs: fusion_bench against pytrec_eval and ranx, side by side in one run.

Ours goes from text to checked, aligned, read-only arrays; the others only read the same files into
their own tables. Rounds are interleaved and the first is dropped; medians of CPU seconds (of all
threads) and of wall-clock seconds are compared.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from benchmarks.cases import SIZES, Size
from fusion_bench.io import load_dataset

__all__ = ["NAMES", "rows"]

TITLE = "Loading four runs of 698,000 lines"
#: How a document is named by its number.
NAMES: dict[str, Callable[[int], str]] = {
    "numbers": str,
    "long": lambda d: f"clueweb09-en{d // 60_000:04d}-{d // 600 % 100:02d}-{d % 60_000:05d}",
}
CORPUS = 8_841_823
Times = tuple[float, float]


def write_files(folder: Path, name: Callable[[int], str], size: Size) -> Path:
    """The runs, the judgements and the ``dataset.yaml`` of one synthetic collection."""
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
                found = zip(pools[q][best[q]].tolist(), noisy[q, best[q]].tolist(), strict=True)
                file.writelines(
                    f"{query} Q0 {name(document)} {rank} {20 + 4 * score:.6f} run{s}\n"
                    for rank, (document, score) in enumerate(found, start=1)
                )
    listed = "".join(f"  run{s}: {{path: run{s}.trec}}\n" for s in range(size.runs))
    path = folder / "dataset.yaml"
    path.write_text(f"name: made\nqrels: qrels.txt\nruns:\n{listed}")
    return path


def ours(path: Path, *, cache: bool) -> Callable[[], object]:
    """Read, check and align."""

    def go() -> object:
        dataset = load_dataset(path, cache=cache)
        return dataset.aligned(list(dataset.runs))

    return go


def pytrec_eval(path: Path) -> Callable[[], object]:
    """``pytrec_eval.parse_run`` of each run."""
    import pytrec_eval

    def go() -> object:
        tables = []
        for run in sorted(path.parent.glob("*.trec")):
            with run.open() as file:
                tables.append(pytrec_eval.parse_run(file))
        return tables

    return go


def ranx(path: Path) -> Callable[[], object]:
    """``ranx.Run.from_file`` of each run."""
    from ranx import Run

    return lambda: [
        Run.from_file(str(run), kind="trec") for run in sorted(path.parent.glob("*.trec"))
    ]


def timed(contestants: dict[str, Callable[[], object]], rounds: int) -> dict[str, Times]:
    """Median CPU and wall-clock seconds of each, taken in turns."""
    taken: dict[str, list[Times]] = {name: [] for name in contestants}
    for _ in range(rounds + 1):
        for name, go in contestants.items():
            wall, cpu = time.perf_counter(), time.process_time()
            made = go()
            taken[name].append((time.process_time() - cpu, time.perf_counter() - wall))
            del made
    return {
        name: (
            statistics.median(cpu for cpu, _ in times[1:]),
            statistics.median(wall for _, wall in times[1:]),
        )
        for name, times in taken.items()
    }


def rows(rounds: int = 5, size: Size = SIZES["many"]) -> Iterator[dict[str, float | str]]:
    """One row a kind of ids: seconds of each, and how many times as fast ours is."""
    for kind, name in NAMES.items():
        with tempfile.TemporaryDirectory() as folder:
            path = write_files(Path(folder), name, size)
            contestants = {
                "ours": ours(path, cache=False),
                "pytrec_eval": pytrec_eval(path),
                "ranx": ranx(path),
            }
            found = timed(contestants, rounds)
            fill = ours(path, cache=True)
            fill()
            time.sleep(3.5)  # until then, nothing that was just written is trusted unread
            fill()
            found |= timed({"reopened": fill}, 4 * rounds)
        row: dict[str, float | str] = {"ids": kind}
        for other, (cpu, wall) in found.items():
            row |= {f"{other} CPU s": cpu, f"{other} s": wall}
        own, own_wall = found["ours"]
        for other in ("pytrec_eval", "ranx"):
            row |= {
                f"{other} CPU ratio": found[other][0] / own,
                f"{other} ratio": found[other][1] / own_wall,
            }
        row |= {
            "reopening CPU share": found["reopened"][0] / own,
            "reopening share": found["reopened"][1] / own_wall,
        }
        yield row


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    warnings.simplefilter("ignore")  # numba's, about features that ranx uses
    for row in rows(options.rounds):
        print(f"ids: {row.pop('ids')}")
        for what, value in row.items():
            print(f"  {what:22} {value:8.4f}")


if __name__ == "__main__":
    main()
