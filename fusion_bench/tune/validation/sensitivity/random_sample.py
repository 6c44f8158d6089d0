"""A uniform sample of a search space, on which the plateau is measured."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence

from fusion_bench.config.parameters import Parameter, Params, Value


def sample_uniformly(parameters: Sequence[Parameter], count: int, *, seed: int) -> list[Params]:
    """Draw parameter sets uniformly, logarithmic ranges uniformly by the logarithm.

    Args:
        parameters: Each after those that its conditions look at.
        count: How many.
        seed: Of ``random.Random``, whose ``random()`` Python promises never to change.
    """
    source = random.Random(seed)  # noqa: S311 - a sample, no secret
    sample: list[dict[str, Value]] = [{} for _ in range(count)]
    for params in sample:
        for parameter in parameters:
            if parameter.is_active(params):
                params[parameter.path] = _value_at(parameter, source.random())
    return list(sample)


def _value_at(parameter: Parameter, position: float) -> Value:
    """The value at this position in [0, 1) of the parameter's values."""
    if parameter.kind == "choice":
        return parameter.choices[int(position * len(parameter.choices))]
    low, high = parameter.bounds
    step = parameter.step or (1.0 if parameter.kind == "int" else None)
    if parameter.log:  # each whole number gets its own stretch of the logarithm
        around = 0.5 if parameter.kind == "int" else 0.0
        start, end = math.log(low - around), math.log(high + around)
        value = math.exp(start + position * (end - start))
        return min(max(round(value), int(low)), int(high)) if around else value
    if step is None:
        return low + position * (high - low)
    value = low + step * int(position * (math.floor((high - low) / step + 1e-9) + 1))
    return int(value) if parameter.kind == "int" else value
