"""One configuration evaluated: fusion_bench against ranx, side by side in one run.

Rounds are interleaved and the first is dropped; medians of wall-clock seconds are compared.
"""

from __future__ import annotations

import argparse
import json
import platform
import statistics
import time
import warnings
from collections.abc import Callable
from pathlib import Path

from benchmarks.cases import SIZES, Case, make
from fusion_bench.evaluate import System, evaluate
from fusion_bench.measure import parse_measure

MEASURES = ("nDCG@10", "RR@10", "R@100")
RANX_MEASURES = ["ndcg@10", "mrr@10", "recall@100"]
BATCH = 32
RESULTS = Path(__file__).parent / "results.json"


def systems(case: Case, count: int, start: float) -> list[System]:
    """RRF at ``count`` values of k and unequal weights, none of them seen before."""
    names = [run.name for run in case.runs]
    return [
        System.model_validate(
            {
                "name": f"k{n}",
                "runs": names,
                "fusion": {
                    "method": "rrf",
                    "k": start + 1.7 * n,
                    "weights": {name: 1 + 0.1 * i for i, name in enumerate(names)},
                },
            }
        )
        for n in range(count)
    ]


def ours(case: Case, count: int) -> Callable[[int], None]:
    """Evaluate ``count`` configurations at once."""
    measures = [parse_measure(name) for name in MEASURES]

    def go(turn: int) -> None:
        evaluate(systems(case, count, 20.0 + turn), case.aligned, measures)

    return go


def theirs(case: Case) -> Callable[[int], None]:
    """ranx: fuse by RRF, then evaluate the same measures."""
    from ranx import Qrels, Run, fuse
    from ranx import evaluate as ranx_evaluate

    qrels = Qrels(case.qrels.to_dict())
    runs = [Run(run.to_dict(), name=run.name) for run in case.runs]

    def go(turn: int) -> None:
        fused = fuse(runs=runs, norm=None, method="rrf", params={"k": 20 + turn})
        ranx_evaluate(qrels, fused, RANX_MEASURES, make_comparable=True)

    return go


def seconds(contestants: dict[str, Callable[[int], None]], rounds: int) -> dict[str, float]:
    """Median wall-clock seconds of each, taken in turns."""
    taken: dict[str, list[float]] = {name: [] for name in contestants}
    for turn in range(rounds + 1):
        for name, go in contestants.items():
            started = time.perf_counter()
            go(turn)
            taken[name].append(time.perf_counter() - started)
    return {name: statistics.median(times[1:]) for name, times in taken.items()}


def bench(size: str, rounds: int) -> dict[str, float | str]:
    """One row of the table."""
    case = make(SIZES[size])
    found = seconds(
        {"one": ours(case, 1), "batch": ours(case, BATCH), "ranx": theirs(case)}, rounds
    )
    batch = found["batch"] / BATCH
    return {
        "size": case.size.name,
        "ranx ms": 1000 * found["ranx"],
        "one ms": 1000 * found["one"],
        "one ratio": found["ranx"] / found["one"],
        "batch ms": 1000 * batch,
        "batch ratio": found["ranx"] / batch,
    }


def main() -> None:
    """Print the table and keep it beside this file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sizes", nargs="*", default=["many", "deep"], choices=[*SIZES, []])
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    warnings.simplefilter("ignore")  # numba's, about features that ranx uses
    rows = [bench(size, options.rounds) for size in options.sizes]
    machine = f"{platform.machine()}, Python {platform.python_version()}"
    RESULTS.write_text(
        json.dumps({"machine": machine, "rows": rows}, indent=2, ensure_ascii=False) + "\n"
    )
    print(f"{', '.join(MEASURES)}; medians of {options.rounds} rounds on {machine}")
    print(f"{'size':20} {'ranx':>10} {'one':>10} {'ratio':>8} {'in 32s':>10} {'ratio':>8}")
    for row in rows:
        print(
            f"{row['size']:20} {row['ranx ms']:8.1f}ms {row['one ms']:8.2f}ms "
            f"{row['one ratio']:7.0f}× {row['batch ms']:8.2f}ms {row['batch ratio']:7.0f}×"
        )


if __name__ == "__main__":
    main()
