"""Configurations evaluated: fusion_bench against ranx's ``fuse(rrf)`` and ``evaluate``."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from benchmarks.cases import SIZES, Case, make_case
from benchmarks.timing import Row, Task, median_seconds
from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.experiment.system import System
from fusion_bench.measures import parse_measure
from fusion_bench.ranking.system_scores import evaluate_systems

TITLE = "RRF configurations"
#: fusion_bench and ranx's names of the measures.
MEASURES = {"nDCG@10": "ndcg@10", "RR@10": "mrr@10", "R@100": "recall@100"}
WITH_AP = MEASURES | {"AP": "map"}
BATCH = 32
#: The sets of measures at each size.
MEASURE_SETS = {"many": [MEASURES], "deep": [MEASURES, WITH_AP]}


def make_systems(
    sources: Sequence[str], count: int, turn: int, *, equal: bool = False
) -> list[System]:
    """RRF at ``count`` values of k that no other turn sees; equal weights tie many documents."""
    step = 0 if equal else 0.1
    weights = {name: 1 + step * i for i, name in enumerate(sources)}
    return [
        System.model_validate(
            {
                "name": f"k{n}",
                "runs": tuple(sources),
                "fusion": {"method": "rrf", "k": 20.0 + turn + 1.7 * n, "weights": weights},
            }
        )
        for n in range(count)
    ]


def fusion_bench_task(
    runs: AlignedRuns,
    measures: Sequence[str],
    count: int,
    *,
    equal: bool = False,
    threads: int | None = None,
) -> Task:
    """Evaluate ``count`` configurations at once."""
    parsed = [parse_measure(name) for name in measures]

    def task(turn: int) -> object:
        batch = make_systems(runs.sources, count, turn, equal=equal)
        return evaluate_systems(batch, runs, parsed, threads=threads)

    return task


def ranx_task(case: Case, measures: Sequence[str]) -> Task:
    """Fuse by RRF in ranx, then evaluate the same measures."""
    from ranx import Qrels, Run, fuse
    from ranx import evaluate as ranx_evaluate

    qrels = Qrels(case.qrels.to_dict())
    runs = [Run(run.to_dict(), name=run.name) for run in case.runs]

    def task(turn: int) -> object:
        fused = fuse(runs=runs, norm=None, method="rrf", params={"k": 20 + turn})
        return ranx_evaluate(qrels, fused, list(measures), make_comparable=True)

    return task


def rows(rounds: int, *, toy: bool = False) -> list[Row]:
    """One line for each size, choice of measures and of weights."""
    lines = []
    for size, measure_sets in ({"toy": [WITH_AP]} if toy else MEASURE_SETS).items():
        case = make_case(SIZES[size])
        for measures in measure_sets:
            lines += _measure_rows(case, measures, rounds)
    return lines


def _measure_rows(case: Case, measures: dict[str, str], rounds: int) -> list[Row]:
    make_task = partial(fusion_bench_task, case.aligned, list(measures))
    names = {"unequal": False, "equal": True}
    contestants = {"ranx": ranx_task(case, list(measures.values()))}
    for name, equal in names.items():
        contestants |= {f"{name} {n}": make_task(n, equal=equal) for n in (1, BATCH)}
    times = median_seconds(contestants, rounds)
    return [
        {
            "queries × runs × documents": case.size.name,
            "measures": ", ".join(measures),
            "weights": name,
            "ranx ms": 1000 * times["ranx"],
            "one ms": 1000 * times[f"{name} 1"],
            "one ratio": times["ranx"] / times[f"{name} 1"],
            f"of {BATCH} ms": 1000 * times[f"{name} {BATCH}"] / BATCH,
            f"of {BATCH} ratio": times["ranx"] / (times[f"{name} {BATCH}"] / BATCH),
        }
        for name in names
    ]
