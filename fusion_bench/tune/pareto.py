"""Quality against effort: the best parameters at each rerank depth, the efficient ones.

What changes is set at its own path, in the blend of every query type alike.

Good parameter sets are taken to every depth; a multi-objective sampler searches for those that are
good at small depths only. All of it on the tuning queries; the report adds held-out values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from fusion_bench.config.parameters import Params, Value, integer
from fusion_bench.data.ordering import BoolArray, FloatArray
from fusion_bench.experiment.settings import TuneSettings
from fusion_bench.experiment.system import System
from fusion_bench.io.provenance import ListMeta
from fusion_bench.methods.blend import RerankBlend
from fusion_bench.report import tuning_records as model
from fusion_bench.tune import rerank_cost, search
from fusion_bench.tune.held_out import HeldOutEvaluation
from fusion_bench.tune.objective import TuningObjective
from fusion_bench.tune.space import strip_conditions
from fusion_bench.tune.trial_selection import evaluate_in_batches

#: Rerank depths tried where the space does not have them; 0 = no reranker.
LADDER = (0, 1, 2, 3, 5, 7, 10, 14, 20, 30, 40, 50, 60, 75, 100)
#: Depths taken from a range.
STEPS = 14


def depth_ladder(
    objective: TuningObjective, asked: Sequence[int] | None, also: Sequence[int]
) -> tuple[int, ...]:
    """The depths of a front, 0 first.

    What the space allows, where it says so, otherwise :data:`LADDER`. Beyond the largest pool of
    candidates a greater depth changes nothing, so only the first such depth stays.

    Args:
        objective: What is tuned.
        asked: Instead of all that.
        also: Depths that must be there: the default's, the choice's.
    """
    allowed: set[int] = set()
    for parameter in objective.parameters if not asked else ():
        if not is_depth_path(parameter.path):
            continue
        if parameter.kind == "choice":
            allowed |= {int(value) for value in parameter.choices if isinstance(value, int)}
        else:
            low, high = parameter.bounds
            ladder = np.geomspace(max(low, 1), high, STEPS)
            allowed |= {int(d) for d in np.rint(ladder) if parameter.contains(int(d))} | {int(low)}
    listed = asked or sorted(allowed) or LADDER
    pool = int(np.diff(objective.runs.offsets).max())
    enough = min((depth for depth in listed if depth >= pool), default=pool)
    return tuple(sorted({0, *(depth for depth in (*listed, *also) if depth <= enough)}))


def reranker_names(objective: TuningObjective) -> tuple[str, ...]:
    """The rerank lists that the default or the space names."""
    chosen = {
        str(name)
        for parameter in objective.parameters
        if strip_conditions(parameter.path).endswith("blend.reranker")
        for name in parameter.choices
    }
    return tuple(sorted(chosen | objective.system.reranker_names))


def is_depth_path(path: str) -> bool:
    """Whether a path is that of a rerank depth."""
    return strip_conditions(path).endswith("blend.depth")


def max_rerank_depth(system: System) -> int:
    """The greatest rerank depth of any query; 0 = no reranker."""
    return max((blend.depth for blend in _rerank_blends(system).values()), default=0)


def at_depth(objective: TuningObjective, params: Params, depth: int) -> Params | None:
    """Set the rerank depth of a parameter set; 0 = without a reranker.

    Returns:
        None where it has no reranker whose depth could be set.
    """
    prefixes = _rerank_blends(objective.build_system(params))
    if depth:
        return set_in_blends(objective, params, "depth", depth) if prefixes else None
    for prefix in prefixes:
        blend = f"{prefix}blend."
        kept = {p: v for p, v in params.items() if not strip_conditions(p).startswith(blend)}
        params = kept | {f"{blend}method": "none"}
    return params


def set_in_blends(objective: TuningObjective, params: Params, name: str, value: Value) -> Params:
    """Set a value in every blend of a parameter set that has a reranker.

    Args:
        objective: What is tuned.
        params: Path → value.
        name: What is set, whatever condition its path names: ``depth`` or ``reranker``.
        value: What it is set to.
    """
    for prefix in _rerank_blends(objective.build_system(params)):
        path = f"{prefix}blend.{name}"
        params = {p: v for p, v in params.items() if strip_conditions(p) != path} | {path: value}
    return params


def _rerank_blends(system: System) -> dict[str, RerankBlend]:
    """Blends with a reranker, by the prefix of their paths before ``blend``."""
    by_class = (system.class_configs or {}).items()
    blends = {f"{system.class_field}.{name}.": config.blend for name, config in by_class}
    return {
        prefix: blend
        for prefix, blend in (blends or {"": system.blend}).items()
        if isinstance(blend, RerankBlend)
    }


#: Parameter sets evaluated, and written down, together.
BATCH = 16


@dataclass(frozen=True)
class EvaluatedPoint:
    """One parameter set.

    Attributes:
        params: Its parameters, its depth among them.
        system: The system with them.
        value: Mean of the measure over the tuning queries.
        cost: Of its reranking.
    """

    params: Params
    system: System
    value: float
    cost: rerank_cost.SystemCost

    @property
    def reranker_and_depth(self) -> tuple[str, int]:
        """Its reranker and its depth."""
        return " + ".join(sorted(self.cost.counts)), max_rerank_depth(self.system)


class EvaluatedPoints:
    """Parameter sets on the tuning queries, each evaluated once.

    Args:
        objective: On the tuning queries.
        costs: Of each reranker.
        log: Where values are written, and looked up when the work was interrupted.
        on_progress: Called with how many are done.
    """

    def __init__(
        self,
        objective: TuningObjective,
        costs: Mapping[str, rerank_cost.RerankerCost],
        *,
        log: search.TrialLog | None = None,
        on_progress: Callable[[int], None] = lambda _done: None,
    ) -> None:
        self.objective = objective
        self.points: list[EvaluatedPoint] = []
        self._costs, self._on_progress = costs, on_progress
        self._log = search.TrialLog() if log is None else log

    @property
    def evaluations(self) -> int:
        """Number of parameter sets that were evaluated or looked up."""
        return len(self._log.trials)

    def add_point(self, params: Params, value: float) -> EvaluatedPoint:
        """Add a parameter set whose value is known."""
        system = self.objective.build_system(params)
        cost = rerank_cost.system_cost(system, self.objective.runs, self._costs)
        self.points.append(EvaluatedPoint(params, system, value, cost))
        return self.points[-1]

    def evaluate_params(self, trials: Sequence[Params]) -> list[EvaluatedPoint | None]:
        """The point of each parameter set; None = it cannot be computed."""
        points: list[EvaluatedPoint | None] = []
        for start in range(0, len(trials), BATCH):
            batch = trials[start : start + BATCH]
            done = self._log.evaluate_params(self.objective, batch, "sampler")
            points += [None if t.is_failed else self.add_point(t.params, t.value) for t in done]
            self._on_progress(self.evaluations)
        return points


def comparable_axes(
    costs: Sequence[rerank_cost.RerankerCost],
) -> tuple[rerank_cost.EffortAxis, ...]:
    """The axes on which all rerankers can be compared.

    A candidate of one reranker is not one of another, so with several rerankers candidates count
    only where neither latency nor price is known of all.
    """
    priced: tuple[rerank_cost.EffortAxis, ...] = ("seconds", "cost")
    known = [axis for axis in priced if all(getattr(cost, axis) is not None for cost in costs)]
    return ("candidates", *known) if len(costs) == 1 or not known else tuple(known)


def front_points(
    evaluation: HeldOutEvaluation,
    points: Sequence[EvaluatedPoint],
    axes: Sequence[rerank_cost.EffortAxis],
    default: search.Trial,
    chosen: search.Trial,
) -> tuple[model.ParetoPoint, ...]:
    """The best at each depth of each reranker, the default and the choice, by effort.

    Args:
        evaluation: The objective, its split and the rules.
        points: What was evaluated.
        axes: What they are compared by.
        default: Always shown.
        chosen: Always shown.
    """
    kept = _best_per_depth(points, (default, chosen))
    means = np.array([point.value for point in kept])
    names = sorted({name for point in kept for name in point.cost.counts})
    columns = [[point.cost.effort(axis) for point in kept] for axis in axes]
    if "candidates" in axes:
        counts = [[point.cost.counts.get(name, 0.0) for point in kept] for name in names]
        columns = columns[1:] + counts
    efficient = is_efficient(np.array(columns).reshape(len(columns), len(kept)).T, means)
    values = evaluate_in_batches(evaluation.objective, [point.params for point in kept])
    best = values[int(np.argmax(np.where(efficient, means, -np.inf)))]
    base = values[next(i for i, p in enumerate(kept) if p.params == default.params)]

    def subtract(other: FloatArray) -> list[model.PairedDifference]:
        gains = evaluation.estimate_family([evaluation.pair_values(row, other) for row in values])
        return [
            model.PairedDifference(mean=gain.difference, low=gain.low, high=gain.high)
            for gain in gains
        ]

    roles = {"default": default.params, "chosen": chosen.params}
    records = [
        model.ParetoPoint(
            roles=tuple(role for role, params in roles.items() if point.params == params),
            reranker=point.reranker_and_depth[0] or None,
            depth=point.reranker_and_depth[1],
            candidates=point.cost.candidates,
            cost=point.cost.cost,
            seconds=point.cost.seconds,
            slow=point.cost.slow,
            value=point.value,
            held_out=float(row[evaluation.split.held_out].mean()),
            over_default=over_default,
            over_best=over_best,
            params=dict(point.params),
            config=point.system.resolved_config,
            efficient=bool(on_front),
        )
        for point, row, on_front, over_default, over_best in zip(
            *(kept, values, efficient, subtract(base), subtract(best)), strict=True
        )
    ]
    efforts = np.array([point.cost.effort(axes[-1]) for point in kept])
    return tuple(records[i] for i in np.lexsort((means, efforts)).tolist())


def _best_per_depth(
    points: Sequence[EvaluatedPoint], always: Sequence[search.Trial]
) -> list[EvaluatedPoint]:
    """One point a depth and reranker, of equally good ones the first; and what is always shown."""
    best: dict[tuple[str, int], EvaluatedPoint] = {}
    for point in points:
        key = point.reranker_and_depth
        if key not in best or point.value > best[key].value:
            best[key] = point
    kept = list(best.values())
    for trial in always:
        if all(point.params != trial.params for point in kept):
            kept.append(next(point for point in points if point.params == trial.params))
    return kept


def is_efficient(effort: FloatArray, value: FloatArray) -> BoolArray:
    """Mask of the points that no other point dominates.

    A point dominates another if it takes no more of any kind of effort, has no lower value, and
    differs.

    Args:
        effort: Shape (P, A): A kinds of effort for each point; less is better.
        value: Shape (P,): more is better.

    Returns:
        Shape (P,). Of equal points all are kept.
    """
    no_more = (effort[:, None] <= effort[None]).all(axis=2)
    less = (effort[:, None] < effort[None]).any(axis=2)
    no_worse, better = value[:, None] >= value[None], value[:, None] > value[None]
    return np.asarray(~(no_more & no_worse & (less | better)).any(axis=0))


#: So many of the best trials are taken to every depth …
BEST = 4
#: … and these, by their rank among all (in sixteenths): what is second at one depth may be the best
#: at another.
SPREAD = (1, 5, 9, 13)
#: The sampler's own dimension: the index into the ladder of depths.
DEPTH = "front.depth"


@dataclass(frozen=True, eq=False)
class ParetoSearch:
    """The search for a front of quality against effort.

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

    def run(self, result: search.SearchResult, chosen: search.Trial) -> model.ParetoFront | None:
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
        costs = rerank_cost.reranker_costs(names, self.evaluation.tuning.effort, self.provenance)
        axes = comparable_axes(list(costs.values()))
        tuning = self.evaluation.tuning
        objective = self.evaluation.objective.subset_queries(self.evaluation.split.tune)
        always = {trial.number: trial for trial in (result.default_trial, chosen)}.values()
        also = [max_rerank_depth(objective.build_system(trial.params)) for trial in always]
        ladder = depth_ladder(objective, rules.depths, also)
        candidates = candidate_params(objective, result, chosen)
        params = list(params_at_depths(objective, candidates, ladder, tuple(costs)))
        more = 0 if rules.method == "depths" else rules.trials
        total = len(params) + more
        log = search.open_trial_log(self.log, objective, tuning.search_settings())
        evaluated = EvaluatedPoints(
            objective, costs, log=log, on_progress=lambda done: self.on_progress(done, total)
        )
        for trial in always:
            evaluated.add_point(trial.params, trial.value)
        interrupted = False
        try:
            evaluated.evaluate_params(params)
            if more:
                search_all_depths(evaluated, ladder, axes[-1], tuning, trials=more)
        except KeyboardInterrupt:
            interrupted = True
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


def candidate_params(
    objective: TuningObjective, result: search.SearchResult, chosen: search.Trial
) -> list[Params]:
    """Parameter sets to try at every depth: default, choice, the best, and some of the others."""
    ordered = sorted(result.computed_trials, key=lambda trial: (-trial.value, trial.number))
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
    """List each parameter set at each depth with each reranker, without duplicates."""
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
    axis: rerank_cost.EffortAxis,
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
    sampler = search.optuna_sampler(tuning.front.method, tuning.seed)
    proposer = search.OptunaProposer(space, sampler, ["maximize", "minimize"])
    for start in range(0, trials, tuning.batch):
        resolved: list[Params] = []
        for asked in proposer.ask(min(tuning.batch, trials - start)):
            params = {path: value for path, value in asked.items() if path != DEPTH}
            deeper = at_depth(objective, params, ladder[int(str(asked[DEPTH]))])
            resolved.append(objective.normalize_weights(deeper or params))
        points = evaluated.evaluate_params(resolved)
        proposer.tell([None if p is None else (p.value, p.cost.effort(axis)) for p in points])
