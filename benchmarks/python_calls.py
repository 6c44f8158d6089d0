"""One task from Python, with this package and with ranx: fuse two runs, compare the three.

Run it as ``python -m benchmarks.python_calls``. Each library works in a process of its own that has
read the runs into dictionaries; the first call includes what the library imports and compiles.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any, TypeAlias

import fusion_bench as fb

Nested: TypeAlias = dict[str, dict[str, Any]]
LIBRARIES = ("fusion_bench", "ranx")


def call_fusion_bench(qrels: Nested, runs: dict[str, Nested]) -> object:
    """Fuse and compare with this package."""
    fused = fb.fuse(runs, "rrf", k=60)
    return fb.compare(qrels, {**runs, "rrf": fused}, measures=["nDCG@10", "RR@10"]).to_pandas()


def call_ranx(qrels: Nested, runs: dict[str, Nested]) -> object:
    """Fuse and compare with ranx, as its documentation does."""
    import ranx

    lists = [ranx.Run(run, name=name) for name, run in runs.items()]
    fused = ranx.fuse(lists, method="rrf", params={"k": 60})
    fused.name = "rrf"
    report = ranx.compare(
        ranx.Qrels(qrels), [*lists, fused], ["ndcg@10", "mrr@10"], stat_test="fisher"
    )
    return report.to_dataframe()


def time_calls(call: Callable[[Nested, dict[str, Nested]], object]) -> list[float]:
    """Seconds of the first and of the second call."""
    data = fb.load_dataset("attack", runs=["bm25", "dense"], rerankers=())
    qrels, runs = data.qrels.to_dict(), {name: run.to_dict() for name, run in data.runs.items()}
    seconds = []
    for _ in range(2):
        start = time.perf_counter()
        call(qrels, runs)
        seconds.append(time.perf_counter() - start)
    return seconds


def main() -> None:
    """Time one library if it is named, otherwise both."""
    if len(sys.argv) > 1:
        print(json.dumps(time_calls(globals()[f"call_{sys.argv[1]}"])))
        return
    for name in LIBRARIES:
        command = [sys.executable, "-m", "benchmarks.python_calls", name]
        done = subprocess.run(command, check=True, capture_output=True, text=True)  # noqa: S603 - ours
        first, second = json.loads(done.stdout.splitlines()[-1])
        print(f"{name}: first call {first:.1f} s, second call {second:.1f} s")


if __name__ == "__main__":
    main()
