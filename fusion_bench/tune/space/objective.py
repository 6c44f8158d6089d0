"""What is tuned, on what, by which measure: parameters in, values per query out."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from fusion_bench.config.parameters import Parameter, Params, Value
from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.ordering import FloatArray, freeze
from fusion_bench.data.records import Qrels, ScoreSpace
from fusion_bench.errors import FusionBenchError
from fusion_bench.evaluation.scores import evaluate
from fusion_bench.experiment.system import System
from fusion_bench.measures import Measure
from fusion_bench.tune.space.parameter_paths import ABSENT, Roles, placed, value_at
from fusion_bench.tune.space.search_space import suggestions
from fusion_bench.tune.space.weight_normalization import canonical, free_weights, kind_of

__all__ = ["Problem"]


@dataclass(frozen=True, eq=False)
class Problem:
    """A system, its parameters, and the queries that tell what a choice of them is worth.

    Attributes:
        system: The default; everything that is not a parameter stays as it says.
        runs: All Q queries.
        measure: What is maximised.
        parameters: The D dimensions of the space, each after those that it depends on.
        spaces: Score space of each rerank list.
        qrels: The judgements; only measures that ir_measures computes need them.
    """

    system: System
    runs: AlignedRuns
    measure: Measure
    parameters: tuple[Parameter, ...]
    spaces: Mapping[str, ScoreSpace] = field(default_factory=dict)
    qrels: Qrels | None = None

    @cached_property
    def roles(self) -> Roles:
        """Roles of the system's sources."""
        rows = self.runs.rows(self.system.runs)
        return {name: self.runs.roles[i] for name, i in zip(self.system.runs, rows, strict=True)}

    @cached_property
    def default(self) -> Params:
        """What the system says of each parameter that takes part in it."""
        found: dict[str, Value] = {}
        for one in self.parameters:
            value = value_at(self.system, one.path, self.roles)
            if value is not ABSENT and one.active(found):
                found[one.path] = value
        return found

    @cached_property
    def suggestions(self) -> tuple[Params, ...]:
        """The default with what the sources of its methods suggest instead."""
        offered = suggestions(self.system, self.parameters)
        return tuple({**self.default, **one} for one in offered)

    @property
    def conditional(self) -> bool:
        """Whether some parameter takes part only under others."""
        return any(one.when for one in self.parameters)

    def contains(self, params: Params) -> bool:
        """Whether these values are a point of the space: every active parameter, nothing else."""
        active = {one.path: one for one in self.parameters if one.active(params)}
        return set(active) == set(params) and all(
            one.contains(params[path]) for path, one in active.items()
        )

    def canonical(self, params: Params) -> Params:
        """The same system's parameters in one form, where only the ratio of its weights counts.

        Args:
            params: Any; those of what cannot be built stay as they are.
        """
        return canonical(params, self.parameters, self.free_weights(params))

    def free_weights(self, params: Params) -> frozenset[str]:
        """The paths of the weights of which only the ratio counts; none in what cannot be built."""
        kind = kind_of(params)
        if kind not in self._free:
            try:
                found = free_weights(self.build(params), params, self.roles)
            except FusionBenchError:
                return frozenset()
            self._free[kind] = found
        return self._free[kind]

    @cached_property
    def _free(self) -> dict[Hashable, frozenset[str]]:
        """What is known of each kind of parameters."""
        return {}

    def build(self, params: Params) -> System:
        """The system with these values; the default itself stays as it is written.

        Raises:
            ConfigError: A value that its method refuses.
        """
        return self.system if params == self.default else placed(self.system, params, self.roles)

    def systems(self, trials: Sequence[Params]) -> list[System]:
        """The system of each trial.

        Raises:
            ConfigError: A value that its method refuses.
        """
        return [self.build(params) for params in trials]

    def values(self, trials: Sequence[Params]) -> FloatArray:
        """The measure of each trial on every query.

        Returns:
            Shape (T, Q); NaN all along a trial that cannot be computed (every source weighs 0, a
            normaliser that refuses these scores). Otherwise the same to the last bit in whatever
            company a trial is evaluated.
        """
        try:
            found = self._values(self.systems(trials))
        except FusionBenchError:
            found = np.vstack([self._value(params) for params in trials])
        freeze(found)
        return found

    def problem_with(self, params: Params) -> str | None:
        """Why a trial cannot be computed; None = it can."""
        try:
            self._values([self.build(params)])
        except FusionBenchError as error:
            return str(error)
        return None

    def restricted(self, keep: NDArray[np.bool_]) -> Problem:
        """The same on only the queries where ``keep``, shape (Q,), is true."""
        return self if keep.all() else replace(self, runs=self.runs.subset(keep))

    def points(self, trials: Sequence[Params]) -> FloatArray:
        """Places in the unit cube, shape (T, D); NaN for a parameter that takes no part."""
        return np.array(
            [
                [
                    one.unit(params[one.path]) if one.path in params else np.nan
                    for one in self.parameters
                ]
                for params in trials
            ]
        ).reshape(len(trials), len(self.parameters))

    def _value(self, params: Params) -> FloatArray:
        try:
            return self._values([self.build(params)])
        except FusionBenchError:
            return np.full((1, len(self.runs.queries)), np.nan)

    def _values(self, systems: Sequence[System]) -> FloatArray:
        found = evaluate(systems, self.runs, [self.measure], spaces=self.spaces, qrels=self.qrels)
        return np.array([scores.values[0] for scores in found])
