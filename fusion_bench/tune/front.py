"""Quality against effort: what each rerank depth is worth, and which depths are worth their price.

Effort depends on nothing but the depth, so the front is found by taking good numbers to every
depth and keeping the best for each, rather than by a search that trades one for the other.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fusion_bench.blend.none import NoBlend
from fusion_bench.errors import FusionBenchError
from fusion_bench.evaluate import System, evaluate
from fusion_bench.order import FloatArray, IntArray
from fusion_bench.report.tuning import model
from fusion_bench.tune.log import Trial
from fusion_bench.tune.problem import Problem
from fusion_bench.tune.splits import BoolArray, Split
from fusion_bench.tuning import Effort

__all__ = ["DEPTHS", "efficient", "front"]

#: Rerank depths that are tried; 0 = no reranker.
DEPTHS = (0, 5, 10, 20, 30, 50, 75, 100)
#: So many of the best trials are taken to every depth.
TRIALS = 8


def front(
    problem: Problem, split: Split, trials: Sequence[Trial], effort: Effort
) -> tuple[model.FrontPoint, ...]:
    """The best of some good trials at each rerank depth.

    Args:
        problem: What was tuned.
        split: Chosen on the tuning queries; the held-out values are only shown.
        trials: Of the search.
        effort: What a reranked candidate costs.

    Returns:
        By depth; empty where no good trial has a reranker, or each query type has its own depth.
    """
    if problem.system.by_query_type is not None:
        return ()
    done = sorted((t for t in trials if not t.failed), key=lambda t: (-t.value, t.number))
    kept = [(t, s) for t in done if (s := problem.build(t.params)).blend.reranker_name][:TRIALS]
    points = []
    for depth in DEPTHS if kept else ():
        tried = [(trial, at_depth(system, depth)) for trial, system in kept]
        values = _values(problem, [system for _, system in tried])
        means = np.where(np.isnan(values).any(axis=1), -np.inf, values[:, split.tune].mean(axis=1))
        best = int(np.argmax(means))
        if np.isfinite(means[best]):
            count = reranked(tried[best][1], problem, split.held_out, depth)
            points.append(_point(depth, count, effort, tried[best][0], values[best], split))
    keep = efficient([p.candidates for p in points], [p.value for p in points])
    return tuple(
        point.model_copy(update={"efficient": bool(on)})
        for point, on in zip(points, keep, strict=True)
    )


def at_depth(system: System, depth: int) -> System:
    """The system that reranks so many; 0 = none."""
    blend = NoBlend() if depth == 0 else system.blend.model_copy(update={"depth": depth})
    return system.model_copy(update={"blend": blend})


def reranked(system: System, problem: Problem, mask: BoolArray, depth: int) -> float:
    """Mean candidates that a reranker has to score for the queries where ``mask`` is true."""
    sizes: IntArray = np.diff(system.view(problem.runs).offsets)[mask]
    return float(np.minimum(sizes, depth).mean())


def efficient(effort: Sequence[float], value: Sequence[float]) -> BoolArray:
    """(P,): nothing that takes as little effort or less is as good."""
    keep = [
        not any(
            (e <= effort[i] and v > value[i]) or (e < effort[i] and v >= value[i])
            for e, v in zip(effort, value, strict=True)
        )
        for i in range(len(value))
    ]
    return np.array(keep, dtype=bool)


def _values(problem: Problem, systems: Sequence[System]) -> FloatArray:
    """(T, Q); NaN all along a system that cannot be computed: candidates without a score."""
    rows = []
    for system in systems:
        try:
            found = evaluate(
                [system],
                problem.runs,
                [problem.measure],
                spaces=problem.spaces,
                qrels=problem.qrels,
            )
            rows.append(found[0].values[0])
        except FusionBenchError:
            rows.append(np.full(len(problem.runs.queries), np.nan))
    return np.array(rows)


def _point(
    depth: int, count: float, effort: Effort, trial: Trial, values: FloatArray, split: Split
) -> model.FrontPoint:
    price, seconds = effort.price, effort.seconds
    return model.FrontPoint(
        depth=depth,
        candidates=count,
        cost=None if price is None else price * count,
        seconds=None if seconds is None else seconds * count,
        value=float(values[split.tune].mean()),
        held_out=float(values[split.held_out].mean()),
        params=dict(trial.params),
        efficient=False,
    )
