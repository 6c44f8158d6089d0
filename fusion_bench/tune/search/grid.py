"""Every point of a finite space, for the samplers ``grid`` and ``brute_force``."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType

import numpy as np

from fusion_bench.config.parameters import Parameter, Params, Value
from fusion_bench.errors import ConfigError
from fusion_bench.experiment.tune_settings import SearchSettings

#: The samplers that go through every point.
EXHAUSTIVE_SAMPLERS = ("grid", "brute_force")
#: The most points that are gone through.
MOST_POINTS = 200_000


def grid_points(
    parameters: Sequence[Parameter],
    settings: SearchSettings,
    normalize: Callable[[Params], Params],
) -> list[Params]:
    """Every point of a finite space once, in random order where not all of them are wanted.

    Args:
        parameters: The space.
        settings: Whose sampler is ``grid`` or ``brute_force``.
        normalize: Maps equal systems to equal parameters, so that each system is tried once.

    Raises:
        ConfigError: There are too many points, or infinitely many.
    """
    levels = {parameter.path: _parameter_levels(parameter, settings) for parameter in parameters}
    points = list(itertools.islice(_all_points(parameters, levels), MOST_POINTS + 1))
    if len(points) > MOST_POINTS:
        raise ConfigError(
            f"sampler {settings.sampler}: the space has more than {MOST_POINTS:,} points: "
            "tune fewer parameters, use larger steps, or another sampler"
        )
    points = list({repr(params): params for params in map(normalize, points)}.values())
    if len(points) > settings.trials:
        order = np.random.default_rng(settings.seed).permutation(len(points))
        points = [points[i] for i in order]
    return points


def _parameter_levels(parameter: Parameter, settings: SearchSettings) -> tuple[Value, ...]:
    """The values to go through."""
    if parameter.kind == "choice":
        return parameter.choices
    low, high = parameter.bounds
    every = settings.sampler == "brute_force"
    step = 1.0 if every and parameter.kind == "int" and not parameter.step else parameter.step
    if step is not None:  # on integers, divided once: sums of steps lose the last ones
        values = low + np.arange(int((high - low) / step + 1e-9) + 1) * step
    elif every:
        raise ConfigError(
            f"sampler brute_force goes through every value, and {parameter.path} has no step: "
            "give it one, or use grid"
        )
    elif parameter.log:
        values = np.geomspace(low, high, settings.points)
    else:
        values = np.linspace(low, high, settings.points)
    if parameter.kind == "int":
        return tuple(dict.fromkeys(int(v) for v in np.rint(values)))
    return tuple(float(f"{v:.12g}") for v in values)


def _all_points(
    parameters: Sequence[Parameter],
    levels: Mapping[str, Sequence[Value]],
    chosen: Params = MappingProxyType({}),
) -> Iterator[Params]:
    """Every point, the last parameter running fastest; inactive parameters take no part."""
    if not parameters:
        yield chosen
        return
    first, *rest = parameters
    if not first.is_active(chosen):
        yield from _all_points(rest, levels, chosen)
        return
    for value in levels[first.path]:
        yield from _all_points(rest, levels, {**chosen, first.path: value})
