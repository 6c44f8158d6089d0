"""A line searched by evaluating it: where scores along it are not known beforehand.

A coarse pass over the whole range and a fine one between the neighbours of the best. It may miss a
narrow peak, unlike an exact line, and what it finds is marked as searched.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Final

import numpy as np

from fusion_bench.config.parameters import Parameter, Value
from fusion_bench.data.ordering import FloatArray

__all__ = ["MOST", "searched"]

#: Evaluations on one line, that of its result and one at 0 included.
MOST: Final = 40
COARSE: Final = 20
FINE: Final = MOST - COARSE - 2

#: Values of the parameter → the mean at each; NaN = cannot be computed.
Means = Callable[[Sequence[Value]], FloatArray]


def searched(parameter: Parameter, now: Value, means: Means) -> tuple[Value, float]:
    """The best of a coarse and a fine pass along a number.

    Args:
        parameter: A number.
        now: Where the line is stood on; not evaluated again.
        means: Evaluates at most ``COARSE + FINE`` places.

    Returns:
        A place and the mean there; −inf where nothing could be computed.
    """
    coarse = [value for value in _spread(parameter, 0.0, 1.0, COARSE) if value != now]
    found = dict(zip(coarse, _known(means(coarse)), strict=True)) if coarse else {}
    if not found:
        return now, -math.inf
    # A number that is not set, such as a threshold, stands nowhere on its line.
    places = sorted({*found, *([now] if parameter.contains(now) else [])}, key=_number)
    at = places.index(max(found, key=found.__getitem__))
    left, right = places[max(at - 1, 0)], places[min(at + 1, len(places) - 1)]
    between = _spread(parameter, parameter.unit(left), parameter.unit(right), FINE + 2)
    fine = [value for value in between if value not in found and value != now][:FINE]
    if fine:
        found |= dict(zip(fine, _known(means(fine)), strict=True))
    best = max(found, key=found.__getitem__)
    return best, found[best]


def _known(means: FloatArray) -> list[float]:
    return [float(mean) for mean in np.where(np.isnan(means), -np.inf, means)]


def _number(value: Value) -> float:
    return float(value) if isinstance(value, int | float) else math.nan


def _spread(parameter: Parameter, start: float, stop: float, count: int) -> list[Value]:
    """Different values of a number, evenly over a stretch of its range in the unit cube."""
    low, high = parameter.bounds
    step = parameter.step or (1.0 if parameter.kind == "int" else None)
    found: list[Value] = []
    for share in np.linspace(start, stop, count).tolist():
        share = min(max(share, 0.0), 1.0)
        value = low + share * (high - low)
        if parameter.log:
            value = math.exp(math.log(low) + share * (math.log(high) - math.log(low)))
        if step is not None:
            value = low + step * round((value - low) / step)
        value = min(max(value, low), high)
        found.append(int(value) if parameter.kind == "int" else parameter.neat(value))
    return list(dict.fromkeys(found))
