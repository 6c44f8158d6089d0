"""Exact line searches: coordinate ascent from the best trial, one parameter after the other.

Along each weight and each share of a blend the measure is an exactly known step function, so the
best place on the line is found, not guessed. What comes of it is a trial like any other: it is
evaluated, and held-out queries judge it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from fusion_bench.space import Parameter, Params, Value
from fusion_bench.tune.line import line
from fusion_bench.tune.log import Trial
from fusion_bench.tune.problem import Problem
from fusion_bench.tune.steps import can_step, steps

__all__ = ["polish"]

#: Times that every line is searched; a round without a gain is the last.
ROUNDS: Final = 3
#: A smaller gain is noise of the sum.
NOISE: Final = 1e-9


def polish(
    problem: Problem,
    start: Trial,
    evaluate: Callable[[Params], Trial],
    go_on: Callable[[], bool],
) -> Trial:
    """Climb from a trial until no line leads higher.

    Args:
        problem: On the queries that are tuned on.
        start: The best trial.
        evaluate: Makes a trial.
        go_on: Asked before each line whether there is time.

    Returns:
        The best trial; ``start`` where nothing was gained.
    """
    best = start
    if not can_step(problem.measure):
        return best
    for number in range(ROUNDS):
        before = best
        for one in problem.parameters:
            if not go_on():
                return best
            if one.path in best.params:
                best = _along(problem, best, one, evaluate, zero=number == 0)
        if best is before:
            break
    return best


def _along(
    problem: Problem,
    best: Trial,
    parameter: Parameter,
    evaluate: Callable[[Params], Trial],
    *,
    zero: bool,
) -> Trial:
    """The best place on one line; ``best`` where it is there already."""
    along = line(problem, best.params, parameter)
    if along is None:
        return best
    low, high = parameter.bounds
    now = best.params[parameter.path]
    here = float(now) if isinstance(now, int | float) else low
    place, value = steps(along, low, high, problem.measure).best(here)
    if value > best.value + NOISE:
        best = _better(best, evaluate({**best.params, parameter.path: place}))
    # A weight of 0 takes the source away, and with it documents that the line has on it.
    if zero and low == 0 and parameter.path.startswith("fusion") and here > 0:
        without: dict[str, Value] = {**best.params, parameter.path: 0.0}
        best = _better(best, evaluate(without))
    return best


def _better(best: Trial, other: Trial) -> Trial:
    return other if other.value > best.value else best
