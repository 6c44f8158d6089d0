"""Ways to search the Pareto front of quality against rerank effort, compared.

Every way starts from the same search at one depth and evaluates about as many settings. The figure
is the mean gain of a front over the default without a reranker, over budgets of 0 to 100 candidates
a query. A budget takes the affordable point of the greatest tuning value. On the tuning queries
that is the hypervolume divided by 100. "By the logarithm" gives budgets of 1 to 10 the weight of
those of 10 to 100.

    FUSION_BENCH_PARITY_DATA=… python -m benchmarks.studies.front
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice

import numpy as np

from benchmarks.collections import (
    Collection,
    build_objective,
    load_attack,
    load_collection,
    load_parity_run,
    make_toy_collection,
)
from benchmarks.studies.study import PAGE, parse_options, write_table
from benchmarks.studies.tuning import split_queries
from benchmarks.table import format_rows, pivot, read_rows, write_csv
from fusion_bench.config.parameters import Params
from fusion_bench.data.alignment import align
from fusion_bench.data.ordering import FloatArray
from fusion_bench.data.query_splits import QuerySplit
from fusion_bench.experiment.settings import (
    EffortSettings,
    FrontSettings,
    ParameterRange,
    TuneSettings,
)
from fusion_bench.methods.blend.formulas import NoBlend
from fusion_bench.report.tuning_records import ParetoPoint
from fusion_bench.tune.held_out import HeldOutEvaluation
from fusion_bench.tune.objective import TuningObjective
from fusion_bench.tune.pareto import (
    EvaluatedPoints,
    candidate_params,
    depth_ladder,
    front_points,
    is_efficient,
    params_at_depths,
    reranker_names,
    search_all_depths,
)
from fusion_bench.tune.rerank_cost import reranker_costs
from fusion_bench.tune.search import SearchResult, run_search

#: Greatest budget, in candidates a query.
MOST = 100.0
#: Depths of the simplest way.
DEPTHS = (0, 5, 10, 20, 30, 50, 75, 100)
SECOND_RERANKER = "ruri-reranker-small"


@dataclass(frozen=True, eq=False)
class Case:
    """A finished search at one depth, from which each way starts.

    Attributes:
        judge: The objective and its split.
        part: The objective on the tuning queries.
        study: The search at one depth.
        ladder: Depths.
        seed: Of the samplers.
    """

    judge: HeldOutEvaluation
    part: TuningObjective
    study: SearchResult
    ladder: tuple[int, ...]
    seed: int

    @property
    def best_params(self) -> list[Params]:
        """Settings of the search, the best first."""
        done = (trial for trial in self.study.trials if not trial.is_failed)
        return [t.params for t in sorted(done, key=lambda t: (-t.value, t.number))]

    def cross_depths(self, settings: Sequence[Params], ladder: Sequence[int]) -> list[Params]:
        """These settings at these depths with every reranker."""
        return list(params_at_depths(self.part, settings, ladder, reranker_names(self.part)))


def try_best_eight(case: Case, archive: EvaluatedPoints, _budget: int) -> None:
    """The best eight settings at eight depths."""
    archive.evaluate_params(case.cross_depths(case.best_params[:8], DEPTHS))


def try_best(case: Case, archive: EvaluatedPoints, budget: int) -> None:
    """As many of the best settings at all depths as the budget allows."""
    archive.evaluate_params(list(islice(case.cross_depths(case.best_params, case.ladder), budget)))


def try_spread(case: Case, archive: EvaluatedPoints, budget: int) -> None:
    """Settings evenly spread over the search, by their rank, at all depths."""
    points = len(reranker_names(case.part)) * len(case.ladder)
    step = max(1, len(case.best_params) * points // budget)
    archive.evaluate_params(case.cross_depths(case.best_params[::step], case.ladder)[:budget])


def make_sampler(method: str, *, after: bool) -> Callable[[Case, EvaluatedPoints, int], None]:
    """A multi-objective sampler, alone or after the pool at all depths."""

    def way(case: Case, archive: EvaluatedPoints, budget: int) -> None:
        if after:
            archive.evaluate_params(
                case.cross_depths(
                    candidate_params(case.part, case.study, case.study.best_trial), case.ladder
                )
            )
            budget -= archive.evaluations

        rules = FrontSettings.model_validate({"method": method})
        tuning = TuneSettings(system="default", batch=16, seed=case.seed, front=rules)
        search_all_depths(archive, case.ladder, "candidates", tuning, trials=budget)

    return way


WAYS: Mapping[str, Callable[[Case, EvaluatedPoints, int], None]] = {
    "best 8 at 8 depths": try_best_eight,
    "best at all depths": try_best,
    "spread at all depths": try_spread,
    "NSGA-II": make_sampler("nsga2", after=False),
    "multi-objective TPE": make_sampler("tpe", after=False),
    "pool at all depths, NSGA-II": make_sampler("nsga2", after=True),
    "pool at all depths, TPE (default)": make_sampler("tpe", after=True),
}


def _tune_any_method(collection: Collection, names: Sequence[str]) -> TuningObjective:
    """Method, weights, blend and reranker in one conditional space."""
    ranges = {
        "fusion.method": ParameterRange(choices=("rrf", "weighted_score")),
        "blend.method": ParameterRange(choices=("replace", "linear", "position_aware")),
    }
    if len(names) > 1:
        ranges["blend.reranker"] = ParameterRange(choices=tuple(names))
    blend = {"method": "replace", "reranker": names[0], "missing": "below"}
    return build_objective(collection, blend=blend, parameters=ranges)


def _two_rerankers() -> Collection:
    """Jqara with a good reranker and a small one."""
    jqara = load_collection("jqara")
    lists = [load_parity_run("jqara", "runs", source) for source in jqara.runs.sources]
    names = (*jqara.runs.rerankers, SECOND_RERANKER)
    rerankers = [load_parity_run("jqara", "rerank", name) for name in names]
    runs = align(jqara.qrels, lists, rerankers=rerankers)
    return replace(jqara, runs=runs, spaces={**jqara.spaces, SECOND_RERANKER: "unit"})


def list_cases(*, toy: bool = False) -> Iterator[tuple[str, Collection, TuningObjective]]:
    """Name, collection and objective of each search."""
    if toy:
        made = make_toy_collection()
        yield "toy, any method", made, _tune_any_method(made, made.runs.rerankers)
        return
    position = {"method": "position_aware", "retrieval": "reciprocal_rank", "missing": "below"}
    attack = load_attack()
    yield (
        "attack, rrf_v2 and position_aware",
        attack,
        build_objective(attack, fusion={"method": "rrf_v2"}, blend={**position, "reranker": "ltr"}),
    )
    yield "attack, any method", attack, _tune_any_method(attack, ["ltr"])
    jqara = _two_rerankers()
    yield "jqara, any method, two rerankers", jqara, _tune_any_method(jqara, jqara.runs.rerankers)


def mean_gains(points: Sequence[ParetoPoint], least: float, held_out: float) -> list[float]:
    """Mean gain of the best affordable point over no reranker, on tuning and on held-out queries.

    Each is given twice: over the budget, and over its logarithm.

    Args:
        points: Of a front.
        least: Tuning value of the default without a reranker.
        held_out: Held-out value of that default.
    """
    effort = np.array([point.candidates for point in points])
    value = np.array([point.value for point in points])
    held = np.array([point.held_out for point in points])
    efficient = np.flatnonzero(is_efficient(effort[:, None], value))
    efficient = efficient[np.argsort(effort[efficient], kind="stable")]
    log = np.log(np.maximum(effort, 1.0))
    return [
        float((_count_budgets(scaled[efficient], most) * gain[efficient]).sum() / most)
        for gain in (value - least, held - held_out)
        for scaled, most in ((effort, MOST), (log, np.log(MOST)))
    ]


def _count_budgets(effort: FloatArray, most: float) -> FloatArray:
    """The width of the budgets for which each point is the best."""
    return np.diff(np.append(np.minimum(effort, most), most))


def compare_ways(case: Case, budget: int) -> Iterator[tuple[str, FloatArray]]:
    """Each way with its evaluations and four mean gains."""
    costs = reranker_costs(reranker_names(case.part), EffortSettings(), {})
    plain = case.part.system.model_copy(update={"blend": NoBlend()})
    base = replace(case.judge.objective, system=plain, parameters=()).evaluate_params([{}])[0]
    split = case.judge.split
    least, held_out = float(base[split.tune].mean()), float(base[split.held_out].mean())
    for name, way in WAYS.items():
        archive = EvaluatedPoints(case.part, costs)
        default, best = case.study.default_trial, case.study.best_trial
        for trial in {t.number: t for t in (default, best)}.values():
            archive.add_point(trial.params, trial.value)
        way(case, archive, budget)
        points = front_points(case.judge, archive.points, ("candidates",), default, best)
        yield name, np.array([archive.evaluations, *mean_gains(points, least, held_out)])


def search_case(base: TuningObjective, split: QuerySplit, trials: int, seed: int) -> Case:
    """Search at one depth."""
    tuning = TuneSettings(system="default", trials=trials, seed=seed)
    part = base.subset_queries(split.tune)
    study = run_search(base, split.tune, tuning.search_settings())
    judge = HeldOutEvaluation(base, split, tuning)
    return Case(judge, part, study, depth_ladder(part, None, [50]), seed)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run everything and write the table."""
    full = {"seeds": 3, "trials": 200, "evaluations": 150}
    options = parse_options(arguments, __doc__, full, {"seeds": 1, "trials": 6, "evaluations": 8})
    table = [
        "| collection, space | search | evaluations | gain, tuning | tuning, by the logarithm | "
        "gain, held out | held out, by the logarithm |",
        "|:--|:--|--:|--:|--:|--:|--:|",
    ]
    for name, collection, base in list_cases(toy=options.toy):
        if options.only not in name:
            continue
        rows: dict[str, list[FloatArray]] = {}
        for seed in range(options.seeds):
            case = search_case(base, split_queries(collection)[0], options.trials, seed)
            pool = candidate_params(case.part, case.study, case.study.best_trial)
            budget = options.evaluations + len(case.cross_depths(pool, case.ladder))
            for way, row in compare_ways(case, budget):
                rows.setdefault(way, []).append(row)
        for way, per_seed in rows.items():
            count, *gains = np.mean(per_seed, axis=0)
            cells = " | ".join(f"{value:+.4f}" for value in gains)
            first = name if way == next(iter(rows)) else ""
            table.append(f"| {first} | {way} | {count:,.0f} | {cells} |")
            print(table[-1], flush=True)
    if options.write:
        whole = read_rows("\n".join(table), repeated=1)
        summary = pivot(whole, ["search"], "collection, space", "gain, held out")
        link = write_csv(PAGE, "front-searches", whole)
        write_table("front", f"{format_rows(summary)}\n\n{link}")


if __name__ == "__main__":
    main()
