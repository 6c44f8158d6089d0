"""From everything that was evaluated to the points that are shown, judged on held-out queries."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeAlias

import numpy as np

from fusion_bench.data.ordering import FloatArray
from fusion_bench.evaluation.scores import described
from fusion_bench.report.tuning import tuning_records as model
from fusion_bench.stats.comparison import NOISE
from fusion_bench.stats.intervals import estimate_mean
from fusion_bench.tune.pareto.dominance import is_efficient
from fusion_bench.tune.pareto.evaluated_points import EvaluatedPoint
from fusion_bench.tune.pareto.rerank_cost import RerankerCost, SystemCost
from fusion_bench.tune.search.trial_log import Trial
from fusion_bench.tune.validation.held_out import HeldOutEvaluation
from fusion_bench.tune.validation.trial_selection import evaluate_in_batches
from fusion_bench.tune.validation.verdict import none_if_nan

__all__ = ["EffortAxis", "comparable_axes", "effort_on", "front_points"]

EffortAxis: TypeAlias = Literal["candidates", "cost", "seconds"]


def comparable_axes(known: Sequence[RerankerCost]) -> tuple[EffortAxis, ...]:
    """What points can be compared by: candidates of one reranker, what is known of all of them.

    A candidate of one reranker is not one of another, so with several of them candidates count
    only where nothing better is known.
    """
    found: list[EffortAxis] = []
    if all(one.seconds is not None for one in known):
        found.append("seconds")
    if all(one.cost is not None for one in known):
        found.append("cost")
    if len(known) == 1 or not found:
        found.insert(0, "candidates")
    return tuple(found)


def effort_on(taken: SystemCost, axis: EffortAxis) -> float:
    """What a system takes on one axis."""
    if axis == "candidates":
        return taken.mean_candidates
    return (taken.cost if axis == "cost" else taken.seconds) or 0.0


def front_points(
    evaluation: HeldOutEvaluation,
    entries: Sequence[EvaluatedPoint],
    axes: Sequence[EffortAxis],
    default: Trial,
    chosen: Trial,
) -> tuple[model.FrontPoint, ...]:
    """The best at each depth of each reranker, the default and the choice, by effort.

    Args:
        evaluation: The objective, its split and the rules.
        entries: What was evaluated.
        axes: What they are compared by.
        default: Always shown.
        chosen: Always shown.
    """
    kept = _best_per_depth(entries, (default, chosen))
    means = np.array([one.value for one in kept])
    on = is_efficient(_effort_matrix(kept, axes), means)
    values = evaluate_in_batches(evaluation.objective, [one.params for one in kept])
    best = int(np.argmax(np.where(on, means, -np.inf)))
    base = next(i for i, one in enumerate(kept) if one.params == default.params)
    roles = {"default": default.params, "chosen": chosen.params}
    points = [
        model.FrontPoint(
            roles=tuple(role for role, params in roles.items() if one.params == params),
            reranker=one.reranker_and_depth[0] or None,
            depth=one.reranker_and_depth[1],
            candidates=one.cost.mean_candidates,
            cost=one.cost.cost,
            seconds=one.cost.seconds,
            slow=one.cost.slow,
            value=one.value,
            held_out=float(values[i][evaluation.split.held_out].mean()),
            over_default=_held_out_difference(evaluation, values[i], values[base]),
            over_best=_held_out_difference(evaluation, values[i], values[best]),
            params=dict(one.params),
            config=described(one.system),
            efficient=bool(on[i]),
        )
        for i, one in enumerate(kept)
    ]
    order = sorted(range(len(kept)), key=lambda i: (effort_on(kept[i].cost, axes[-1]), means[i]))
    return tuple(points[i] for i in order)


def _best_per_depth(
    entries: Sequence[EvaluatedPoint], always: Sequence[Trial]
) -> list[EvaluatedPoint]:
    """One entry a depth and reranker, of equally good ones the first; and what is always shown."""
    best: dict[tuple[str, int], EvaluatedPoint] = {}
    for one in entries:
        if one.reranker_and_depth not in best or one.value > best[one.reranker_and_depth].value:
            best[one.reranker_and_depth] = one
    kept = list(best.values())
    for trial in always:
        if all(one.params != trial.params for one in kept):
            kept.append(next(one for one in entries if one.params == trial.params))
    return kept


def _effort_matrix(entries: Sequence[EvaluatedPoint], axes: Sequence[EffortAxis]) -> FloatArray:
    """(P, A): candidates count for each reranker apart."""
    names = sorted({name for one in entries for name in one.cost.counts})
    columns = [[effort_on(one.cost, axis) for one in entries] for axis in axes]
    if "candidates" in axes:
        columns = columns[1:] + [[one.cost.counts.get(n, 0.0) for one in entries] for n in names]
    return np.array(columns).reshape(len(columns), len(entries)).T


def _held_out_difference(
    evaluation: HeldOutEvaluation, values: FloatArray, other: FloatArray
) -> model.Difference:
    """On the held-out queries, with what is float noise taken as 0."""
    keep = evaluation.split.held_out
    difference = values[keep] - other[keep]
    found = estimate_mean(
        np.where(np.abs(difference) <= NOISE, 0.0, difference),
        evaluation.group_codes[keep],
        alpha=evaluation.alpha,
        interval=evaluation.interval,
        seed=evaluation.tuning.seed,
    )
    return model.Difference(
        mean=found.mean, low=none_if_nan(found.low), high=none_if_nan(found.high)
    )
