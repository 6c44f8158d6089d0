"""From everything that was evaluated to the points of the report, evaluated held out."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fusion_bench.data.ordering import BoolArray, FloatArray
from fusion_bench.report.tuning_records import pareto_front as model
from fusion_bench.tune.pareto.evaluated_points import EvaluatedPoint
from fusion_bench.tune.pareto.rerank_cost import EffortAxis, RerankerCost
from fusion_bench.tune.search.trial_log import Trial
from fusion_bench.tune.validation.held_out.evaluation import HeldOutEvaluation
from fusion_bench.tune.validation.trial_selection import evaluate_in_batches


def comparable_axes(costs: Sequence[RerankerCost]) -> tuple[EffortAxis, ...]:
    """The axes on which all rerankers can be compared.

    A candidate of one reranker is not one of another, so with several rerankers candidates count
    only where neither latency nor price is known of all.
    """
    priced: tuple[EffortAxis, ...] = ("seconds", "cost")
    known = [axis for axis in priced if all(getattr(cost, axis) is not None for cost in costs)]
    return ("candidates", *known) if len(costs) == 1 or not known else tuple(known)


def front_points(
    evaluation: HeldOutEvaluation,
    points: Sequence[EvaluatedPoint],
    axes: Sequence[EffortAxis],
    default: Trial,
    chosen: Trial,
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
    efficient = is_efficient(_effort_matrix(kept, axes), means)
    values = evaluate_in_batches(evaluation.objective, [point.params for point in kept])
    best = values[int(np.argmax(np.where(efficient, means, -np.inf)))]
    base = values[next(i for i, p in enumerate(kept) if p.params == default.params)]

    def difference(row: FloatArray, other: FloatArray) -> model.PairedDifference:
        gain = evaluation.measure_gain(row, other, evaluation.split.held_out)
        return model.PairedDifference(mean=gain.difference, low=gain.low, high=gain.high)

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
            over_default=difference(row, base),
            over_best=difference(row, best),
            params=dict(point.params),
            config=point.system.resolved_config,
            efficient=bool(on_front),
        )
        for point, row, on_front in zip(kept, values, efficient, strict=True)
    ]
    efforts = np.array([point.cost.effort(axes[-1]) for point in kept])
    return tuple(records[i] for i in np.lexsort((means, efforts)).tolist())


def _best_per_depth(
    points: Sequence[EvaluatedPoint], always: Sequence[Trial]
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


def _effort_matrix(points: Sequence[EvaluatedPoint], axes: Sequence[EffortAxis]) -> FloatArray:
    """(P, A): candidates count for each reranker apart."""
    names = sorted({name for point in points for name in point.cost.counts})
    columns = [[point.cost.effort(axis) for point in points] for axis in axes]
    if "candidates" in axes:
        counts = [[point.cost.counts.get(name, 0.0) for point in points] for name in names]
        columns = columns[1:] + counts
    return np.array(columns).reshape(len(columns), len(points)).T


def is_efficient(effort: FloatArray, value: FloatArray) -> BoolArray:
    """Which points no other point dominates.

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
