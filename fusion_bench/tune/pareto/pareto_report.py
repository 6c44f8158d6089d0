"""From everything that was evaluated to the points that are shown, judged on held-out queries."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeAlias

import numpy as np

from fusion_bench.data.ordering import FloatArray
from fusion_bench.evaluation.scores import described
from fusion_bench.report.tuning import tuning_records as model
from fusion_bench.stats.comparison import NOISE
from fusion_bench.stats.intervals import estimate
from fusion_bench.tune.pareto.dominance import efficient
from fusion_bench.tune.pareto.evaluated_points import Entry
from fusion_bench.tune.pareto.rerank_cost import Taken, Toll
from fusion_bench.tune.search.trial_log import Trial
from fusion_bench.tune.validation.cross_validation import values_of
from fusion_bench.tune.validation.held_out import Judge
from fusion_bench.tune.validation.result_records import maybe

__all__ = ["Axis", "axes_of", "effort_on", "frontier"]

Axis: TypeAlias = Literal["candidates", "cost", "seconds"]


def axes_of(known: Sequence[Toll]) -> tuple[Axis, ...]:
    """What points can be compared by: candidates of one reranker, what is known of all of them.

    A candidate of one reranker is not one of another, so with several of them candidates count
    only where nothing better is known.
    """
    found: list[Axis] = []
    if all(one.seconds is not None for one in known):
        found.append("seconds")
    if all(one.cost is not None for one in known):
        found.append("cost")
    if len(known) == 1 or not found:
        found.insert(0, "candidates")
    return tuple(found)


def effort_on(taken: Taken, axis: Axis) -> float:
    """What a system takes on one axis."""
    if axis == "candidates":
        return taken.candidates
    return (taken.cost if axis == "cost" else taken.seconds) or 0.0


def frontier(
    judge: Judge, entries: Sequence[Entry], axes: Sequence[Axis], default: Trial, chosen: Trial
) -> tuple[model.FrontPoint, ...]:
    """The best at each depth of each reranker, the default and the choice, by effort.

    Args:
        judge: The problem, its split and the rules.
        entries: What was evaluated.
        axes: What they are compared by.
        default: Always shown.
        chosen: Always shown.
    """
    kept = _kept(entries, (default, chosen))
    means = np.array([one.value for one in kept])
    on = efficient(_efforts(kept, axes), means)
    values = values_of(judge.problem, [one.params for one in kept])
    best = int(np.argmax(np.where(on, means, -np.inf)))
    base = next(i for i, one in enumerate(kept) if one.params == default.params)
    roles = {"default": default.params, "chosen": chosen.params}
    points = [
        model.FrontPoint(
            roles=tuple(role for role, params in roles.items() if one.params == params),
            reranker=one.place[0] or None,
            depth=one.place[1],
            candidates=one.taken.candidates,
            cost=one.taken.cost,
            seconds=one.taken.seconds,
            slow=one.taken.slow,
            value=one.value,
            held_out=float(values[i][judge.split.held_out].mean()),
            over_default=_difference(judge, values[i], values[base]),
            over_best=_difference(judge, values[i], values[best]),
            params=dict(one.params),
            config=described(one.system),
            efficient=bool(on[i]),
        )
        for i, one in enumerate(kept)
    ]
    order = sorted(range(len(kept)), key=lambda i: (effort_on(kept[i].taken, axes[-1]), means[i]))
    return tuple(points[i] for i in order)


def _kept(entries: Sequence[Entry], always: Sequence[Trial]) -> list[Entry]:
    """One entry a depth and reranker, of equally good ones the first; and what is always shown."""
    best: dict[tuple[str, int], Entry] = {}
    for one in entries:
        if one.place not in best or one.value > best[one.place].value:
            best[one.place] = one
    kept = list(best.values())
    for trial in always:
        if all(one.params != trial.params for one in kept):
            kept.append(next(one for one in entries if one.params == trial.params))
    return kept


def _efforts(entries: Sequence[Entry], axes: Sequence[Axis]) -> FloatArray:
    """(P, A): candidates count for each reranker apart."""
    names = sorted({name for one in entries for name in one.taken.counts})
    columns = [[effort_on(one.taken, axis) for one in entries] for axis in axes]
    if "candidates" in axes:
        columns = columns[1:] + [[one.taken.counts.get(n, 0.0) for one in entries] for n in names]
    return np.array(columns).reshape(len(columns), len(entries)).T


def _difference(judge: Judge, values: FloatArray, other: FloatArray) -> model.Difference:
    """On the held-out queries, with what is float noise taken as 0."""
    keep = judge.split.held_out
    difference = values[keep] - other[keep]
    found = estimate(
        np.where(np.abs(difference) <= NOISE, 0.0, difference),
        judge.groups[keep],
        alpha=judge.alpha,
        interval=judge.interval,
        seed=judge.tuning.seed,
    )
    return model.Difference(mean=found.mean, low=maybe(found.low), high=maybe(found.high))
