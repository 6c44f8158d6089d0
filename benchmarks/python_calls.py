"""One task from Python, with this package and with ranx: fuse two runs, compare the three.

Run it as ``python -m benchmarks.python_calls``. Each library works in a process of its own that has
read the runs into dictionaries; the first call includes what the library imports and compiles.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Any, TypeAlias

import fusion_bench as fb

Nested: TypeAlias = dict[str, dict[str, Any]]
#: Wall and CPU seconds of each step.
Times: TypeAlias = list[tuple[float, float]]


def call_fusion_bench(qrels: Nested, runs: dict[str, Nested]) -> Iterator[object]:
    """Fuse and compare with this package."""
    fused = fb.fuse(runs, "rrf", k=60)
    yield fused.to_dict()
    yield fb.compare(qrels, {**runs, "rrf": fused}, measures=["nDCG@10", "RR@10"]).to_pandas()


def call_ranx(qrels: Nested, runs: dict[str, Nested]) -> Iterator[object]:
    """Fuse and compare with ranx, as its documentation does."""
    import ranx

    lists = [ranx.Run(run, name=name) for name, run in runs.items()]
    fused = ranx.fuse(lists, method="rrf", params={"k": 60})
    fused.name = "rrf"
    yield fused.to_dict()
    report = ranx.compare(
        ranx.Qrels(qrels),
        [*lists, fused],
        ["ndcg@10", "mrr@10"],
        stat_test="fisher",
    )
    yield report.to_dataframe()


#: Library → its calls.
CALLS = {"fusion_bench": call_fusion_bench, "ranx": call_ranx}


def time_calls(
    call: Callable[[Nested, dict[str, Nested]], Iterator[object]], *, toy: bool = False
) -> list[Times]:
    """Wall and CPU seconds of fusing and of comparing, in the first and in the second call."""
    data = fb.load_dataset("attack", runs=["bm25", "dense"], rerankers=())
    qrels, runs = data.qrels.to_dict(), {name: run.to_dict() for name, run in data.runs.items()}
    if toy:
        kept = list(qrels)[:20]
        qrels = {query: qrels[query] for query in kept}
        runs = {name: {query: run[query] for query in kept} for name, run in runs.items()}
    times = []
    for _ in range(2):
        marks = [(time.perf_counter(), time.process_time())]
        marks += [(time.perf_counter(), time.process_time()) for _ in call(qrels, runs)]
        times.append([(b[0] - a[0], b[1] - a[1]) for a, b in pairwise(marks)])
    return times


def time_in_process(library: str) -> list[Times]:
    """The same in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.python_calls", library]
    done = subprocess.run(command, check=True, capture_output=True, text=True)  # noqa: S603 - ours
    times: list[Times] = json.loads(done.stdout.splitlines()[-1])
    return times


def main(arguments: Sequence[str] | None = None) -> None:
    """Time one library if it is named, otherwise both."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("library", nargs="?", choices=CALLS, help="print its times as JSON")
    parser.add_argument("--toy", action="store_true", help="20 queries, in this process")
    options = parser.parse_args(arguments)
    if options.library is not None:
        print(json.dumps(time_calls(CALLS[options.library], toy=options.toy)))
        return
    for name, call in CALLS.items():
        calls = time_calls(call, toy=True) if options.toy else time_in_process(name)
        for which, times in enumerate(calls, start=1):
            for step, (wall, cpu) in zip(("fuse", "compare"), times, strict=True):
                print(f"{name}, call {which}, {step}: {wall:.1f} s, CPU {cpu:.1f} s")


if __name__ == "__main__":
    main()
