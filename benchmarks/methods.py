"""Every fusion method that ranx has too: fuse and evaluate, beside ranx's ``fuse``, ``evaluate``.

A method of this package that ranx lacks is left out. Three figures a method: ranx; a view of which
nothing is remembered, so that scores are normalized and lists laid out first; and a view that
another method was evaluated on before, as in a sweep. No turn finds its own fused scores there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final, NamedTuple

from benchmarks.cases import SIZES, Case, make_case
from benchmarks.engine import MEASURES
from benchmarks.timing import Row, Task, median_seconds
from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.experiment.system import System
from fusion_bench.measures import parse_measure
from fusion_bench.methods.fuse import fusions
from fusion_bench.ranking.system_scores import evaluate_systems

TITLE = "Fusion methods"
#: As in ranx.
MIN_MAX: Final = {"method": "min_max", "constant": 0}


class Pair(NamedTuple):
    """A method of ranx.

    Attributes:
        name: In ranx.
        norm: Its normalizer; None = it reads ranks.
        parameters: In ranx; ``weights`` stands for one weight a run.
        options: The same for this package.
        rounds: At most so many; None = as many as asked for. One takes ranx most of a minute.
    """

    name: str
    norm: str | None = "min-max"
    parameters: Mapping[str, Any] = {}
    options: Mapping[str, Any] = {}
    rounds: int | None = None


#: Ours → ranx's.
PAIRS: Final[Mapping[str, Pair]] = {
    "comb_sum": Pair("sum"),
    "comb_max": Pair("max"),
    "comb_min": Pair("min"),
    "comb_med": Pair("med"),
    "comb_anz": Pair("anz"),
    "comb_mnz": Pair("mnz"),
    "comb_gmnz": Pair("gmnz", parameters={"gamma": 0.5}, options={"gamma": 0.5}),
    "mixed": Pair("mixed", parameters={"weights": None}),
    "wmnz": Pair("wmnz", parameters={"weights": None}),
    "weighted_sum": Pair("wsum", parameters={"weights": None}),
    "rrf": Pair("rrf", None, {"k": 60}, {"k": 60}),
    "isr": Pair("isr", None),
    "log_isr": Pair("log_isr", None),
    "logn_isr": Pair("logn_isr", None, {"sigma": 0.01}, {"sigma": 0.01}),
    "rbc": Pair("rbc", None, {"phi": 0.8}, {"phi": 0.8}),
    "borda": Pair("bordafuse", None),
    "weighted_borda": Pair("w_bordafuse", None, {"weights": None}),
    "condorcet": Pair("condorcet", None, rounds=1),
    "weighted_condorcet": Pair("w_condorcet", None, {"weights": None}, rounds=1),
}


def make_system(case: Case, method: str) -> System:
    """The method with the options under which it is ranx's."""
    pair = PAIRS[method]
    sources = case.aligned.sources
    fusion: dict[str, Any] = {"method": method, **pair.options}
    if pair.norm is not None:
        fusion["normalize"] = MIN_MAX
    if "weights" in pair.parameters:
        fusion["weights"] = dict(zip(sources, _weights(sources), strict=True))
    return System.model_validate({"name": method, "runs": sources, "fusion": fusion})


def evaluation_task(system: System, views: list[AlignedRuns]) -> Task:
    """Evaluate on another view in each turn."""
    measures = [parse_measure(name) for name in MEASURES]

    def task(turn: int) -> object:
        return evaluate_systems([system], views[turn], measures)

    return task


def ranx_task(case: Case, method: str) -> Task:
    """Normalize, fuse and evaluate in ranx."""
    from ranx import Qrels, Run, fuse
    from ranx import evaluate as ranx_evaluate

    pair = PAIRS[method]
    qrels = Qrels(case.qrels.to_dict())
    runs = [Run(run.to_dict(), name=run.name) for run in case.runs]
    weights = _weights(case.aligned.sources)
    parameters = {k: weights if v is None else v for k, v in pair.parameters.items()}

    def task(turn: int) -> object:  # noqa: ARG001 - ranx remembers nothing
        fused = fuse(runs=runs, norm=pair.norm, method=pair.name, params=parameters)
        return ranx_evaluate(qrels, fused, [*MEASURES.values()], make_comparable=True)

    return task


def rows(rounds: int, *, toy: bool = False) -> list[Row]:
    """One line a method that both have; at toy size of a few, one a kind."""
    case = make_case(SIZES["toy" if toy else "methods"])
    known = {*fusions.load_built_in(), *fusions.aliases}
    methods = [method for method in PAIRS if method in known][:: 6 if toy else 1]
    return [_measure_method(case, method, rounds) for method in methods]


def _measure_method(case: Case, method: str, rounds: int) -> Row:
    limit = PAIRS[method].rounds
    rounds = rounds if limit is None else min(rounds, limit)
    system = make_system(case, method)
    first, next_ones = ([replace(case.aligned) for _ in range(rounds + 1)] for _ in range(2))
    for view in next_ones:
        # Methods that are none of those measured lay the lists out and normalize their scores.
        for other in ({"method": "max_score", "normalize": MIN_MAX}, {"method": "rrf", "k": 1}):
            before = System.model_validate({"name": "s", "runs": view.sources, "fusion": other})
            evaluation_task(before, [view])(0)
    contestants = {
        "ranx": ranx_task(case, method),
        "first": evaluation_task(system, first),
        "next": evaluation_task(system, next_ones),
    }
    times = median_seconds(contestants, rounds)
    return {
        "method": method,
        "in ranx": PAIRS[method].name,
        "ranx ms": 1000 * times["ranx"],
        "first ms": 1000 * times["first"],
        "first ratio": times["ranx"] / times["first"],
        "next ms": 1000 * times["next"],
        "next ratio": times["ranx"] / times["next"],
    }


def _weights(sources: tuple[str, ...]) -> tuple[float, ...]:
    return tuple(1 + 0.5 * i for i in range(len(sources)))
