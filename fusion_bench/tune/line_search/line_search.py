"""Line searches: coordinate ascent from the best trial, one parameter after the other.

Along each weight, each bonus and each share of a blend the measure is an exactly known step
function wherever final scores go along lines, so the best place on the line is found, not guessed.
Any other number is searched on at most ``grid.MOST`` places. What comes of it is a trial like any
other: it is evaluated, it says which kind of line it comes from, and held-out queries judge it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from fusion_bench.config.parameters import Parameter, Params, Value
from fusion_bench.data.ordering import FloatArray
from fusion_bench.tune.line_search.grid import searched
from fusion_bench.tune.line_search.linear_path import Spot, is_weight, line, spot
from fusion_bench.tune.line_search.step_function import can_step, steps
from fusion_bench.tune.search.trial_log import Origin, Trial
from fusion_bench.tune.space.objective import Problem

__all__ = ["polish"]

#: Times that every line is searched; a round without a gain is the last.
ROUNDS: Final = 3
#: A smaller gain is noise of the sum.
NOISE: Final = 1e-9

#: Makes a trial of a setting that a line of this kind led to.
Finish = Callable[[Params, Origin], Trial]


def polish(
    problem: Problem,
    start: Trial,
    finish: Finish,
    go_on: Callable[[], bool],
    *,
    values: Callable[[Sequence[Params]], FloatArray] | None = None,
    others: bool = False,
) -> Trial:
    """Climb from a trial until no line leads higher.

    Args:
        problem: On the queries that are tuned on.
        start: The best trial.
        finish: Makes a trial.
        go_on: Asked before each line whether there is time.
        values: Where to evaluate searched lines: trials → (T, Q) values.
        others: Search every number whose line is not known exactly, and not only the weights.

    Returns:
        The best trial; ``start`` where nothing was gained.
    """
    climb = _Climb(problem, finish, values or problem.values, others)
    best, seen = start, dict[str, Trial]()
    for number in range(ROUNDS):
        before = best
        for one in problem.parameters:
            if not go_on():
                return best
            if one.path in best.params and one.kind != "choice" and seen.get(one.path) is not best:
                best = seen[one.path] = climb.along(best, one, zero=number == 0)
        if best is before:
            break
    return best


@dataclass(frozen=True, eq=False)
class _Climb:
    """What every line of a climb needs."""

    problem: Problem
    finish: Finish
    values: Callable[[Sequence[Params]], FloatArray]
    others: bool

    def along(self, best: Trial, parameter: Parameter, *, zero: bool) -> Trial:
        """The best place on one line; ``best`` where it is there already."""
        here = spot(self.problem, best.params, parameter)
        if here is None:
            return best
        weight = is_weight(parameter.path)
        exact = line(self.problem, best.params, parameter) if self._steps else None
        if exact is None and not weight and not self.others:
            return best
        now = best.params[parameter.path]
        origin: Origin = "searched" if exact is None else "polish"
        level, means = self._means(best, parameter, here)
        if exact is None:
            place, value = searched(parameter, now, means)
        else:
            at = float(now) if isinstance(now, int | float) else parameter.bounds[0]
            place, value = steps(exact, *parameter.bounds, self.problem.measure).best(at)
        if value > level + NOISE:
            best = self._try(best, parameter, place, origin)
        # A weight of 0 takes the source away, and with it documents that the line has on it.
        if zero and weight and parameter.bounds[0] == 0 and now:
            best = self._try(best, parameter, 0.0, origin)
        return best

    @property
    def _steps(self) -> bool:
        return can_step(self.problem.measure)

    def _means(
        self, best: Trial, parameter: Parameter, here: Spot
    ) -> tuple[float, Callable[[Sequence[Value]], FloatArray]]:
        """The mean where we stand and at other places, on the queries that are spoken of."""
        values = self.values if here.share == 1 else here.problem.values

        def means(places: Sequence[Value]) -> FloatArray:
            trials = [{**best.params, parameter.path: place} for place in places]
            return np.asarray(values(trials).mean(axis=1))

        level = best.value if here.share == 1 else float(means([best.params[parameter.path]])[0])
        return level, means

    def _try(self, best: Trial, parameter: Parameter, place: Value, origin: Origin) -> Trial:
        other = self.finish({**best.params, parameter.path: place}, origin)
        return other if other.value > best.value else best
