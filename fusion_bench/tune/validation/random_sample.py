"""A uniform sample of a search space: what a plateau is measured on."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence

from fusion_bench.config.parameters import Parameter, Params, Value

__all__ = ["sample_uniformly"]


def sample_uniformly(parameters: Sequence[Parameter], count: int, *, seed: int) -> list[Params]:
    """Draw settings evenly over the space, logarithmic ranges evenly by the logarithm.

    Args:
        parameters: Each after those that its conditions look at.
        count: How many.
        seed: Of ``random.Random``, whose ``random()`` Python promises never to change.
    """
    source = random.Random(seed)  # noqa: S311 - a sample, no secret
    return [_draw_params(parameters, source) for _ in range(count)]


def _draw_params(parameters: Sequence[Parameter], source: random.Random) -> Params:
    found: dict[str, Value] = {}
    for one in parameters:
        if one.is_active(found):
            found[one.path] = _value_at(one, source.random())
    return found


def _value_at(one: Parameter, place: float) -> Value:
    """What stands at this place in [0, 1) of the parameter's values."""
    if one.kind == "choice":
        return one.choices[int(place * len(one.choices))]
    low, high = one.bounds
    step = one.step or (1.0 if one.kind == "int" else None)
    if one.log and one.kind == "int":  # each whole number gets its own stretch of the logarithm
        ends = math.log(low - 0.5), math.log(high + 0.5)
        return min(max(round(math.exp(ends[0] + place * (ends[1] - ends[0]))), int(low)), int(high))
    if one.log:
        return float(math.exp(math.log(low) + place * (math.log(high) - math.log(low))))
    if step is None:
        return low + place * (high - low)
    value = low + step * int(place * (math.floor((high - low) / step + 1e-9) + 1))
    return int(value) if one.kind == "int" else value
