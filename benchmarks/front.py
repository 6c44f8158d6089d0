"""How well the front of quality against rerank effort is found, by several ways to look for it.

Every way starts from the same search at one depth, and may evaluate about as much. Measured is
what a front gains over the default without a reranker, on average over budgets of 0 to 100
candidates a query: a budget takes the affordable point of the greatest tuning value. On tuning
queries that is the hypervolume over 100 (less what a way loses that finds nothing as good as that
default without a reranker); the held-out queries say what is left of it. "By the
logarithm" weighs budgets of 1 to 10 like those of 10 to 100.

    FUSION_BENCH_PARITY_DATA=… python -m benchmarks.front
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path

import numpy as np

from benchmarks.collections import COLLECTIONS, Collection, attack, problem
from benchmarks.page import put
from benchmarks.tuning import splits
from fusion_bench.blend.none import NoBlend
from fusion_bench.config.parameters import Params
from fusion_bench.data.aligned_runs import align
from fusion_bench.data.ordering import FloatArray
from fusion_bench.data.records import ReadOptions, Run
from fusion_bench.experiment.tune_settings import EffortSettings, ParameterRange, TuneSettings
from fusion_bench.io import load_run
from fusion_bench.report.tuning_records import ParetoPoint
from fusion_bench.tune.pareto.dominance import is_efficient
from fusion_bench.tune.pareto.evaluated_points import EvaluatedPoints
from fusion_bench.tune.pareto.multi_objective import search_tradeoffs
from fusion_bench.tune.pareto.pareto_report import front_points
from fusion_bench.tune.pareto.pareto_search import (
    add_depth_dimension,
    candidate_params,
    params_at_depths,
    resolve_depth,
)
from fusion_bench.tune.pareto.rerank_cost import reranker_costs
from fusion_bench.tune.pareto.rerank_depths import depth_ladder, reranker_names
from fusion_bench.tune.search.search import SearchResult, run_search
from fusion_bench.tune.space.objective import TuningObjective
from fusion_bench.tune.validation.held_out import HeldOutEvaluation

#: Budgets are up to so many candidates a query.
MOST = 100.0
#: What was done before: the best eight settings at eight depths.
EIGHT = (0, 5, 10, 20, 30, 50, 75, 100)
SECOND = "ruri-reranker-small"


@dataclass(frozen=True, eq=False)
class Case:
    """A search that is over, and what a way to look for a front needs.

    Attributes:
        judge: The problem and its split.
        part: The problem on the tuning queries.
        study: The search at one depth.
        ladder: Depths.
        seed: Of samplers.
    """

    judge: HeldOutEvaluation
    part: TuningObjective
    study: SearchResult
    ladder: tuple[int, ...]
    seed: int

    @property
    def good(self) -> list[Params]:
        """Settings of the search, the best first."""
        done = (trial for trial in self.study.trials if not trial.is_failed)
        return [t.params for t in sorted(done, key=lambda t: (-t.value, t.number))]

    def at(self, settings: Sequence[Params], ladder: Sequence[int]) -> list[Params]:
        """These settings at these depths with every reranker."""
        return list(params_at_depths(self.part, settings, ladder, reranker_names(self.part)))


def eight(case: Case, archive: EvaluatedPoints, _budget: int) -> None:
    """The best eight settings at eight depths."""
    archive.evaluate_params(case.at(case.good[:8], EIGHT))


def many(case: Case, archive: EvaluatedPoints, budget: int) -> None:
    """As many of the best settings at all depths as the budget allows."""
    archive.evaluate_params(list(islice(case.at(case.good, case.ladder), budget)))


def spread(case: Case, archive: EvaluatedPoints, budget: int) -> None:
    """Settings evenly spread over the search, by their rank, at all depths."""
    lists = len(reranker_names(case.part)) * len(case.ladder)
    step = max(1, len(case.good) * lists // budget)
    archive.evaluate_params(case.at(case.good[::step], case.ladder)[:budget])


def sampled(method: str, *, after: bool) -> Callable[[Case, EvaluatedPoints, int], None]:
    """A multi-objective sampler, alone or after the pool at all depths."""

    def way(case: Case, archive: EvaluatedPoints, budget: int) -> None:
        if after:
            archive.evaluate_params(
                case.at(candidate_params(case.part, case.study, case.study.best_trial), case.ladder)
            )
            budget -= archive.evaluations

        def evaluate(asked: Sequence[Params]) -> list[tuple[float, float] | None]:
            found = archive.evaluate_params(
                [resolve_depth(case.part, one, case.ladder) for one in asked]
            )
            return [None if one is None else (one.value, one.cost.mean_candidates) for one in found]

        space = add_depth_dimension(case.part.parameters, case.ladder)
        search_tradeoffs(space, evaluate, method=method, trials=budget, batch=16, seed=case.seed)

    return way


WAYS: Mapping[str, Callable[[Case, EvaluatedPoints, int], None]] = {
    "best 8 at 8 depths": eight,
    "best at all depths": many,
    "spread at all depths": spread,
    "NSGA-II": sampled("nsga2", after=False),
    "multi-objective TPE": sampled("tpe", after=False),
    "pool at all depths, NSGA-II": sampled("nsga2", after=True),
    "pool at all depths, TPE (default)": sampled("tpe", after=True),
}


def _methods(collection: Collection, names: Sequence[str]) -> TuningObjective:
    """Method, weights, blend and reranker in one conditional space."""
    ranges = {
        "fusion.method": ParameterRange(choices=("rrf", "weighted_score")),
        "blend.method": ParameterRange(choices=("replace", "linear", "position_aware")),
    }
    if len(names) > 1:
        ranges["blend.reranker"] = ParameterRange(choices=tuple(names))
    blend = {"method": "replace", "reranker": names[0], "missing": "below"}
    return problem(collection, blend=blend, parameters=ranges)


def _two_rerankers() -> Collection:
    """Jqara with a good reranker and a small one."""
    found = COLLECTIONS["jqara"]()
    lists = [_read("runs", source) for source in found.runs.sources]
    rerank = [_read("rerank", one) for one in (*found.runs.rerankers, SECOND)]
    runs = align(found.qrels, lists, rerankers=rerank)
    return replace(found, runs=runs, spaces={**found.spaces, SECOND: "unit"})


def _read(kind: str, name: str) -> Run:
    folder = Path(os.environ["FUSION_BENCH_PARITY_DATA"]) / "jqara" / kind
    reading = ReadOptions(on_duplicate="best_rank")
    return load_run(folder / f"{name}.trec.gz", name=name, reading=reading)


def cases() -> Iterator[tuple[str, Collection, TuningObjective]]:
    """What is searched, and where."""
    position = {"method": "position_aware", "retrieval": "reciprocal_rank", "missing": "below"}
    built_in = attack()
    yield (
        "attack, rrf_v2 and position_aware",
        built_in,
        problem(built_in, fusion={"method": "rrf_v2"}, blend={**position, "reranker": "ltr"}),
    )
    yield "attack, any method", built_in, _methods(built_in, ["ltr"])
    jqara = _two_rerankers()
    yield "jqara, any method, two rerankers", jqara, _methods(jqara, jqara.runs.rerankers)


def areas(points: Sequence[ParetoPoint], least: float, held_out: float) -> list[float]:
    """Mean gain over no reranker of the best affordable point: tuning, held out, each twice.

    Args:
        points: What was found.
        least: Tuning value of the default without a reranker …
        held_out: … and its held-out value.
    """
    effort = np.array([point.candidates for point in points])
    value = np.array([point.value for point in points])
    held = np.array([point.held_out for point in points])
    # Whoever reranks, a candidate is a candidate here.
    on = np.flatnonzero(is_efficient(effort[:, None], value))
    on = on[np.argsort(effort[on], kind="stable")]
    log = np.log(np.maximum(effort, 1.0))
    return [
        float((_widths(scaled[on], most) * gain[on]).sum() / most)
        for gain in (value - least, held - held_out)
        for scaled, most in ((effort, MOST), (log, np.log(MOST)))
    ]


def _widths(effort: FloatArray, most: float) -> FloatArray:
    """How many budgets each point is the best for."""
    return np.diff(np.append(np.minimum(effort, most), most))


def compared(case: Case, budget: int) -> Iterator[tuple[str, FloatArray]]:
    """Each way with evaluations and four areas."""
    known = reranker_costs(reranker_names(case.part), EffortSettings(), {})
    plain = case.part.system.model_copy(update={"blend": NoBlend()})
    base = replace(case.judge.objective, system=plain, parameters=()).evaluate_params([{}])[0]
    split = case.judge.split
    least, held_out = float(base[split.tune].mean()), float(base[split.held_out].mean())
    for name, way in WAYS.items():
        archive = EvaluatedPoints(case.part, known)
        for trial in {
            t.number: t for t in (case.study.default_trial, case.study.best_trial)
        }.values():
            archive.add_point(trial.params, trial.value)
        way(case, archive, budget)
        points = front_points(
            case.judge,
            archive.points,
            ("candidates",),
            case.study.default_trial,
            case.study.best_trial,
        )
        yield name, np.array([archive.evaluations, *areas(points, least, held_out)])


def main() -> None:
    """Run everything and write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--trials", type=int, default=200, help="of the search at one depth")
    parser.add_argument("--write", action="store_true", help="renew docs/tuning.md")
    asked = parser.parse_args()
    table = [
        "| collection, space | looked for by | evaluations | gain, tuning | by the logarithm | "
        "gain, held out | by the logarithm |",
        "|:--|:--|--:|--:|--:|--:|--:|",
    ]
    for name, collection, base in cases():
        found: dict[str, list[FloatArray]] = {}
        for seed in range(asked.seeds):
            tuning = TuneSettings(system="default", trials=asked.trials, seed=seed)
            judge = HeldOutEvaluation(base, splits(collection)[0], tuning)
            part = base.subset_queries(judge.split.tune)
            study = run_search(base, judge.split.tune, tuning.search_settings())
            case = Case(judge, part, study, depth_ladder(part, None, [50]), seed)
            budget = 150 + len(
                case.at(candidate_params(part, study, study.best_trial), case.ladder)
            )
            for way, row in compared(case, budget):
                found.setdefault(way, []).append(row)
        for way, rows in found.items():
            count, *gains = np.mean(rows, axis=0)
            cells = " | ".join(f"{value:+.4f}" for value in gains)
            first = name if way == next(iter(found)) else ""
            table.append(f"| {first} | {way} | {count:,.0f} | {cells} |")
            print(table[-1], flush=True)
    if asked.write:
        put("front", "\n".join(table))


if __name__ == "__main__":
    main()
