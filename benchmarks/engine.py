"""Configurations evaluated: fusion_bench against ranx's ``fuse(rrf)`` and ``evaluate``."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from benchmarks.cases import SIZES, Case, make
from benchmarks.timing import Go, Row, seconds
from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.evaluation.scores import evaluate_systems
from fusion_bench.experiment.system import System
from fusion_bench.measures import parse_measure

__all__ = ["TITLE", "rows", "systems", "theirs"]

TITLE = "RRF configurations"
#: Ours and ranx's names of the measures.
MEASURES = {"nDCG@10": "ndcg@10", "RR@10": "mrr@10", "R@100": "recall@100"}
WITH_AP = MEASURES | {"AP": "map"}
BATCH = 32
#: Which measures are asked for at which size.
ASKED = {"many": [MEASURES], "deep": [MEASURES, WITH_AP]}


def systems(sources: Sequence[str], count: int, turn: int, *, equal: bool = False) -> list[System]:
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


def ours(
    runs: AlignedRuns,
    measures: Sequence[str],
    count: int,
    *,
    equal: bool = False,
    threads: int | None = None,
) -> Go:
    """Evaluate ``count`` configurations at once."""
    parsed = [parse_measure(name) for name in measures]

    def go(turn: int) -> object:
        given = systems(runs.sources, count, turn, equal=equal)
        return evaluate_systems(given, runs, parsed, threads=threads)

    return go


def theirs(case: Case, measures: Sequence[str]) -> Go:
    """ranx: fuse by RRF, then evaluate the same measures."""
    from ranx import Qrels, Run, fuse
    from ranx import evaluate as ranx_evaluate

    qrels = Qrels(case.qrels.to_dict())
    runs = [Run(run.to_dict(), name=run.name) for run in case.runs]

    def go(turn: int) -> object:
        fused = fuse(runs=runs, norm=None, method="rrf", params={"k": 20 + turn})
        return ranx_evaluate(qrels, fused, list(measures), make_comparable=True)

    return go


def rows(rounds: int, *, toy: bool = False) -> list[Row]:
    """One line for each size, choice of measures and of weights."""
    found = []
    for size, choices in ({"toy": [WITH_AP]} if toy else ASKED).items():
        case = make(SIZES[size])
        for asked in choices:
            found += _lines(case, asked, rounds)
    return found


def _lines(case: Case, asked: dict[str, str], rounds: int) -> list[Row]:
    run = partial(ours, case.aligned, list(asked))
    names = {"unequal": False, "equal": True}
    contestants = {"ranx": theirs(case, list(asked.values()))}
    for name, equal in names.items():
        contestants |= {f"{name} {n}": run(n, equal=equal) for n in (1, BATCH)}
    taken = seconds(contestants, rounds)
    return [
        {
            "queries × runs × documents": case.size.name,
            "measures": ", ".join(asked),
            "weights": name,
            "ranx ms": 1000 * taken["ranx"],
            "one ms": 1000 * taken[f"{name} 1"],
            "one ratio": taken["ranx"] / taken[f"{name} 1"],
            f"of {BATCH} ms": 1000 * taken[f"{name} {BATCH}"] / BATCH,
            f"of {BATCH} ratio": taken["ranx"] / (taken[f"{name} {BATCH}"] / BATCH),
        }
        for name in names
    ]
