"""Quality against effort: the best parameters at each rerank depth, and which are efficient.

Good parameter sets are taken to every depth; a multi-objective sampler searches for those that are
good at small depths only. All of it on the tuning queries; the report adds held-out values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from fusion_bench.config.parameters import Params, integer
from fusion_bench.experiment.tune_settings import TuneSettings
from fusion_bench.io.provenance import ListMeta
from fusion_bench.report.tuning_records import pareto_front as model
from fusion_bench.tune.pareto.evaluated_points import EvaluatedPoints
from fusion_bench.tune.pareto.pareto_report import comparable_axes, front_points
from fusion_bench.tune.pareto.rerank_cost import EffortAxis, RerankerCost, reranker_costs
from fusion_bench.tune.pareto.rerank_depths import (
    at_depth,
    depth_ladder,
    is_depth_path,
    max_rerank_depth,
    reranker_names,
    set_in_blends,
)
from fusion_bench.tune.search.samplers import OptunaProposer, optuna_sampler
from fusion_bench.tune.search.search import SearchResult, open_trial_log
from fusion_bench.tune.search.trial_log import Trial
from fusion_bench.tune.space.objective import TuningObjective
from fusion_bench.tune.validation.held_out.evaluation import HeldOutEvaluation

#: So many of the best trials are taken to every depth …
BEST = 4
#: … and these, by their rank among all (in sixteenths): what is second at one depth may be the best
#: at another.
SPREAD = (1, 5, 9, 13)
#: The sampler's own dimension: the index into the ladder of depths.
DEPTH = "front.depth"


@dataclass(frozen=True, eq=False)
class ParetoSearch:
    """What is needed to search for a front.

    Attributes:
        evaluation: The objective, its split and the rules.
        provenance: How the rerank lists were made, by name.
        log: Where the values are kept, so that nothing is evaluated twice; None = nowhere.
        on_progress: Called with how many parameter sets are done, and how many there will be.
    """

    evaluation: HeldOutEvaluation
    provenance: Mapping[str, ListMeta] = field(default_factory=dict)
    log: Path | None = None
    on_progress: Callable[[int, int], None] = lambda _done, _total: None

    def run(self, result: SearchResult, chosen: Trial) -> model.ParetoFront | None:
        """The front of a search.

        Args:
            result: The search on all tuning queries.
            chosen: The trial that was chosen.

        Returns:
            None where none is asked for, or there is no reranker.
        """
        rules, names = self.evaluation.tuning.front, reranker_names(self.evaluation.objective)
        if rules.method == "none" or not names:
            return None
        costs = reranker_costs(names, self.evaluation.tuning.effort, self.provenance)
        axes = comparable_axes(list(costs.values()))
        evaluated, interrupted = self._evaluate_points(result, chosen, costs, axes)
        return model.ParetoFront(
            method=rules.method,
            evaluations=evaluated.evaluations,
            axes=axes,
            points=front_points(
                self.evaluation, evaluated.points, axes, result.default_trial, chosen
            ),
            efforts=tuple(cost.source for cost in costs.values()),
            interrupted=interrupted,
        )

    def _evaluate_points(
        self,
        result: SearchResult,
        chosen: Trial,
        costs: Mapping[str, RerankerCost],
        axes: Sequence[EffortAxis],
    ) -> tuple[EvaluatedPoints, bool]:
        """Everything that was evaluated, and whether it was interrupted."""
        tuning = self.evaluation.tuning
        objective = self.evaluation.objective.subset_queries(self.evaluation.split.tune)
        always = {trial.number: trial for trial in (result.default_trial, chosen)}.values()
        also = [max_rerank_depth(objective.build_system(trial.params)) for trial in always]
        ladder = depth_ladder(objective, tuning.front.depths, also)
        candidates = candidate_params(objective, result, chosen)
        params = list(params_at_depths(objective, candidates, ladder, tuple(costs)))
        more = 0 if tuning.front.method == "depths" else tuning.front.trials
        total = len(params) + more
        log = open_trial_log(self.log, objective, tuning.search_settings())
        evaluated = EvaluatedPoints(
            objective, costs, log=log, on_progress=lambda done: self.on_progress(done, total)
        )
        for trial in always:
            evaluated.add_point(trial.params, trial.value)
        try:
            evaluated.evaluate_params(params)
            if more:
                search_all_depths(evaluated, ladder, axes[-1], tuning, trials=more)
        except KeyboardInterrupt:
            return evaluated, True
        return evaluated, False


def candidate_params(
    objective: TuningObjective, result: SearchResult, chosen: Trial
) -> list[Params]:
    """Parameter sets to try at every depth: default, choice, the best, and some of the others."""
    done = (trial for trial in result.trials if not trial.is_failed)
    ordered = sorted(done, key=lambda trial: (-trial.value, trial.number))
    reranked = [t for t in ordered if max_rerank_depth(objective.build_system(t.params))]
    picked = [result.default_trial, chosen, *reranked[:BEST]]
    picked += [reranked[len(reranked) * k // 16] for k in SPREAD if reranked]
    return [trial.params for trial in {trial.number: trial for trial in picked}.values()]


def params_at_depths(
    objective: TuningObjective,
    candidates: Sequence[Params],
    ladder: Sequence[int],
    names: Sequence[str],
) -> Iterator[Params]:
    """Each parameter set at each depth with each reranker, no two alike."""
    seen: list[Params] = []
    for params in candidates:
        variants = [params]
        if len(names) > 1 and objective.system.class_configs is None:
            variants = [set_in_blends(objective, params, "reranker", name) for name in names]
        for variant in variants:
            for depth in ladder:
                changed = at_depth(objective, variant, depth)
                if changed is not None and changed not in seen:
                    seen.append(changed)
                    yield changed


def search_all_depths(
    evaluated: EvaluatedPoints,
    ladder: Sequence[int],
    axis: EffortAxis,
    tuning: TuneSettings,
    *,
    trials: int,
) -> None:
    """Search parameters and depth together for great value and little effort.

    Args:
        evaluated: Evaluates parameter sets and keeps the results.
        ladder: Depths.
        axis: The effort.
        tuning: Batch, seed and ``front.method``: ``tpe`` (Ozaki et al. 2022, "Multiobjective
            tree-structured Parzen estimator", JAIR 73) or ``nsga2`` (Deb et al. 2002, "A fast and
            elitist multiobjective genetic algorithm: NSGA-II").
        trials: How many.
    """
    objective = evaluated.objective
    space = [parameter for parameter in objective.parameters if not is_depth_path(parameter.path)]
    space.append(integer(DEPTH, 0, len(ladder) - 1))
    sampler = optuna_sampler(tuning.front.method, tuning.seed)
    proposer = OptunaProposer(space, sampler, ["maximize", "minimize"])
    for start in range(0, trials, tuning.batch):
        resolved: list[Params] = []
        for asked in proposer.ask(min(tuning.batch, trials - start)):
            params = {path: value for path, value in asked.items() if path != DEPTH}
            deeper = at_depth(objective, params, ladder[int(str(asked[DEPTH]))])
            resolved.append(objective.normalize_weights(deeper or params))
        points = evaluated.evaluate_params(resolved)
        proposer.tell([None if p is None else (p.value, p.cost.effort(axis)) for p in points])
