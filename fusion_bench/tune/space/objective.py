"""What is tuned, on what, by which measure: parameters in, values per query out."""

from __future__ import annotations

import hashlib
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
from fusion_bench.evaluation.scores import evaluate_systems
from fusion_bench.experiment.system import System
from fusion_bench.measures import Measure
from fusion_bench.tune.space.parameter_paths import (
    ABSENT,
    SourceRoles,
    apply_parameters,
    read_parameter,
)
from fusion_bench.tune.space.search_space import preset_params
from fusion_bench.tune.space.weight_normalization import (
    find_free_weights,
    normalize_weights,
    structure_key,
)

__all__ = ["TuningObjective"]


@dataclass(frozen=True, eq=False)
class TuningObjective:
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
    def source_roles(self) -> SourceRoles:
        """Roles of the system's sources."""
        rows = self.runs.rows(self.system.runs)
        return {name: self.runs.roles[i] for name, i in zip(self.system.runs, rows, strict=True)}

    @cached_property
    def default_params(self) -> Params:
        """What the system says of each parameter that takes part in it."""
        found: dict[str, Value] = {}
        for one in self.parameters:
            value = read_parameter(self.system, one.path, self.source_roles)
            if value is not ABSENT and one.is_active(found):
                found[one.path] = value
        return found

    @cached_property
    def preset_params(self) -> tuple[Params, ...]:
        """The default with what the sources of its methods suggest instead."""
        offered = preset_params(self.system, self.parameters)
        return tuple({**self.default_params, **one} for one in offered)

    @property
    def conditional(self) -> bool:
        """Whether some parameter takes part only under others."""
        return any(one.when for one in self.parameters)

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 over the system, the measure, the space and the data."""
        runs, digest = self.runs, hashlib.sha256()
        for text in (
            self.system.model_dump_json(),
            self.measure.model_dump_json(),
            self.parameters,
            runs.queries,
            runs.ties,
            sorted(self.spaces.items()),
        ):
            digest.update(repr(text).encode())
        arrays = (runs.offsets, runs.ranks, runs.scores, runs.grades, runs.rerank, runs.documents)
        for array in arrays:
            digest.update(np.ascontiguousarray(array).tobytes())
        return digest.hexdigest()

    def contains(self, params: Params) -> bool:
        """Whether these values are a point of the space: every active parameter, nothing else."""
        active = {one.path: one for one in self.parameters if one.is_active(params)}
        return set(active) == set(params) and all(
            one.contains(params[path]) for path, one in active.items()
        )

    def normalize_weights(self, params: Params) -> Params:
        """The same system's parameters in one form, where only the ratio of its weights counts.

        Args:
            params: Any; those of what cannot be built stay as they are.
        """
        return normalize_weights(params, self.parameters, self.free_weights(params))

    def free_weights(self, params: Params) -> frozenset[str]:
        """The paths of the weights of which only the ratio counts; none in what cannot be built."""
        kind = structure_key(params)
        if kind not in self._free_by_structure:
            try:
                found = find_free_weights(self.build_system(params), params, self.source_roles)
            except FusionBenchError:
                return frozenset()
            self._free_by_structure[kind] = found
        return self._free_by_structure[kind]

    @cached_property
    def _free_by_structure(self) -> dict[Hashable, frozenset[str]]:
        """What is known of each kind of parameters."""
        return {}

    def build_system(self, params: Params) -> System:
        """The system with these values; the default itself stays as it is written.

        Raises:
            ConfigError: A value that its method refuses.
        """
        return (
            self.system
            if params == self.default_params
            else apply_parameters(self.system, params, self.source_roles)
        )

    def systems(self, trials: Sequence[Params]) -> list[System]:
        """The system of each trial.

        Raises:
            ConfigError: A value that its method refuses.
        """
        return [self.build_system(params) for params in trials]

    def evaluate_params(self, trials: Sequence[Params]) -> FloatArray:
        """The measure of each trial on every query.

        Returns:
            Shape (T, Q); NaN all along a trial that cannot be computed (every source weighs 0, a
            normaliser that refuses these scores). Otherwise the same to the last bit in whatever
            company a trial is evaluated.
        """
        try:
            found = self._evaluate_systems(self.systems(trials))
        except FusionBenchError:
            found = np.vstack([self._evaluate_alone(params) for params in trials])
        freeze(found)
        return found

    def failure_reason(self, params: Params) -> str | None:
        """Why a trial cannot be computed; None = it can."""
        try:
            self._evaluate_systems([self.build_system(params)])
        except FusionBenchError as error:
            return str(error)
        return None

    def subset_queries(self, keep: NDArray[np.bool_]) -> TuningObjective:
        """The same on only the queries where ``keep``, shape (Q,), is true."""
        return self if keep.all() else replace(self, runs=self.runs.subset(keep))

    def unit_points(self, trials: Sequence[Params]) -> FloatArray:
        """Places in the unit cube, shape (T, D); NaN for a parameter that takes no part."""
        return np.array(
            [
                [
                    one.unit_position(params[one.path]) if one.path in params else np.nan
                    for one in self.parameters
                ]
                for params in trials
            ]
        ).reshape(len(trials), len(self.parameters))

    def _evaluate_alone(self, params: Params) -> FloatArray:
        try:
            return self._evaluate_systems([self.build_system(params)])
        except FusionBenchError:
            return np.full((1, len(self.runs.queries)), np.nan)

    def _evaluate_systems(self, systems: Sequence[System]) -> FloatArray:
        found = evaluate_systems(
            systems, self.runs, [self.measure], spaces=self.spaces, qrels=self.qrels
        )
        return np.array([scores.values[0] for scores in found])
