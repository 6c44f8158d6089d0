"""The sampler ``parzen``: parameters like those of the better trials, unlike those of the others.

A multivariate tree-structured Parzen estimator on the unit cube. Each trial is a kernel, a normal
density cut off at the ends of the range; a uniform density is the prior. Of some candidates drawn
from the better trials' density, the one of the greatest ratio of both densities is proposed. All
proposals of a batch are drawn at once, which makes it some ten times as fast as Optuna's ``tpe``.

Source: Bergstra et al. 2011, "Algorithms for Hyper-Parameter Optimization", NIPS 24; one kernel a
trial over all parameters as in Falkner et al. 2018, "BOHB", ICML.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import numpy as np

from fusion_bench.config.parameters import Parameter, Params
from fusion_bench.data.ordering import FloatArray
from fusion_bench.util.special_functions import special

#: Trials before the first that follows them.
STARTUP: Final = 10
#: Share of the trials that are the better ones, and how many these are at most.
BETTER, MOST_BETTER = 0.1, 25
#: Candidates of a proposal.
CANDIDATES: Final = 24
#: Standard deviation of a kernel of one trial, as a share of the range.
BANDWIDTH: Final = 0.2


class _Density:
    """A mixture of one kernel a trial and the uniform density.

    Args:
        centers: Shape (K, D): positions of the trials; NaN = uniform, as the parameter took no
            part.
        levels: Shape (D,): how many choices a parameter has; 0 = it is a number.
    """

    def __init__(self, centers: FloatArray, levels: FloatArray) -> None:
        count, dimensions = centers.shape
        self._centers = np.vstack([centers, np.full(dimensions, np.nan)])
        self._levels, self._stay = levels, 1 / (1 + levels / (count + 1))
        width = BANDWIDTH * max(count, 1) ** (-1 / (dimensions + 4))
        self._width = max(width, 1 / min(100, 1 + count))

    def draw(self, source: np.random.Generator, count: int) -> FloatArray:
        """Positions, shape (count, D)."""
        centers = self._centers[source.integers(len(self._centers), size=count)]
        position, stays = source.random((2, *centers.shape))
        low, high = special.ndtr(-centers / self._width), special.ndtr((1 - centers) / self._width)
        drawn = centers + self._width * special.ndtri(low + position * (high - low))
        steps = np.maximum(self._levels, 1)
        other = np.floor(position * steps) / np.maximum(steps - 1, 1)
        chosen = np.where(stays < self._stay, centers, other)
        drawn = np.where(self._levels > 0, chosen, drawn)
        uniform = np.where(self._levels > 0, other, position)
        return np.clip(np.where(np.isnan(drawn), uniform, drawn), 0.0, 1.0)

    def log_density(self, points: FloatArray) -> FloatArray:
        """Of positions of shape (N, D), relative to the uniform density; NaN = takes no part."""
        terms = np.zeros((len(points), len(self._centers)))
        for d, (levels, stay) in enumerate(zip(self._levels, self._stay, strict=True)):
            gaps = points[:, d, None] - self._centers[:, d]
            if levels:
                term = np.log(levels * stay * (np.abs(gaps) < 0.5 / levels) + 1 - stay)
            else:
                center = self._centers[:, d] / self._width
                mass = special.ndtr(1 / self._width - center) - special.ndtr(-center)
                scale = np.log(self._width * math.sqrt(2 * math.pi) * mass)
                term = -0.5 * (gaps / self._width) ** 2 - scale
            terms += np.where(np.isnan(gaps), 0.0, term)
        greatest = terms.max(axis=1)
        return np.asarray(greatest + np.log(np.exp(terms - greatest[:, None]).mean(axis=1)))


class ParzenProposer:
    """Proposes parameter sets, asked and told in batches.

    Args:
        parameters: The space, each parameter after those that it depends on.
        seed: Makes the proposals repeatable.
    """

    def __init__(self, parameters: Sequence[Parameter], seed: int) -> None:
        self._parameters, self._source = parameters, np.random.default_rng(seed)
        self._levels = np.array([len(parameter.choices) for parameter in parameters], dtype=float)
        self._points: list[list[float]] = []
        self._values: list[float] = []
        self._asked: list[Params] = []

    def add_trials(self, trials: Sequence[tuple[Params, float]]) -> None:
        """Add trials that it did not propose; failed ones (NaN) are left out."""
        for params, value in trials:
            if not math.isnan(value):
                self._points.append(self._positions(params))
                self._values.append(value)

    def ask(self, count: int) -> list[Params]:
        """New parameter sets."""
        if len(self._values) < STARTUP:
            points = self._source.random((count, len(self._parameters)))
        else:
            points = self._find_promising(count)
        self._asked = [self._params_at(point) for point in points.tolist()]
        return self._asked

    def tell(self, values: Sequence[float]) -> None:
        """The values of the last :meth:`ask`; NaN = could not be computed."""
        self.add_trials(list(zip(self._asked, values, strict=True)))

    def _find_promising(self, count: int) -> FloatArray:
        """(count, D): each the best of its candidates."""
        points = np.array(self._points)[np.argsort(-np.array(self._values), kind="stable")]
        better = min(math.ceil(BETTER * len(points)), MOST_BETTER)
        good, bad = (_Density(part, self._levels) for part in (points[:better], points[better:]))
        drawn = good.draw(self._source, count * CANDIDATES)
        if any(parameter.when for parameter in self._parameters):
            drawn = np.array([self._positions(self._params_at(row)) for row in drawn.tolist()])
        ratios = (good.log_density(drawn) - bad.log_density(drawn)).reshape(count, CANDIDATES)
        best: FloatArray = drawn[np.arange(count) * CANDIDATES + ratios.argmax(axis=1)]
        return best

    def _positions(self, params: Params) -> list[float]:
        """Where each parameter stands in [0, 1]; NaN = it takes no part."""
        return [
            p.unit_position(params[p.path]) if p.path in params else math.nan
            for p in self._parameters
        ]

    def _params_at(self, point: Sequence[float]) -> Params:
        params: Params = {}
        for parameter, position in zip(self._parameters, point, strict=True):
            if parameter.is_active(params):
                value = parameter.round_value(parameter.value_at(position))
                params = {**params, parameter.path: value}
        return params
