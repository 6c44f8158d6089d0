"""The objective of tuning: parameters in, values per query out."""

from __future__ import annotations

import contextlib
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from fusion_bench.config.parameters import Parameter, Params, Value
from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.fingerprint import Fingerprint
from fusion_bench.data.ordering import BoolArray, FloatArray, IntArray, make_readonly
from fusion_bench.data.qrels import Qrels
from fusion_bench.data.records import ScoreSpace
from fusion_bench.data.rows.grouped_rows import number_by_appearance
from fusion_bench.errors import FusionBenchError
from fusion_bench.evaluation.scores import evaluate_systems
from fusion_bench.evaluation.trials.evaluate_trials import mean_of_trials
from fusion_bench.experiment.system import System
from fusion_bench.measures import Measure
from fusion_bench.tune.space.parameter_paths import (
    ABSENT,
    SourceRoles,
    apply_parameters,
    read_parameter,
    stage_roles,
)
from fusion_bench.tune.space.search_space import preset_params
from fusion_bench.tune.space.weight_normalization import find_free_weights, normalize_weights
from fusion_bench.util.digests import hash_values
from fusion_bench.util.formatting import pluralize


def source_roles(system: System, runs: AlignedRuns) -> SourceRoles:
    """Roles of the system's sources, and of the runs that its stages read."""
    names = system.base_runs
    base = {name: runs.roles[i] for name, i in zip(names, runs.rows(names), strict=True)}
    return stage_roles(system, base)


@dataclass(frozen=True, eq=False, repr=False)
class TuningObjective:
    """A system, its parameters, and the queries and the measure that evaluate them.

    Attributes:
        system: The default; everything that is not a parameter stays as it is there.
        runs: All Q queries.
        measure: What is maximized.
        parameters: The D dimensions of the space, each after those that it depends on.
        spaces: Score space of each rerank list.
        qrels: The judgments; only measures that ir_measures computes need them.
        contents: Fingerprint of the dataset that all of these come from.
        later_trials: As ``runs``, with the second, third, … file of each list that has several, as
            far as all of them have one. A value is the mean over these trials of the lists; a trial
            of the search is another thing.
    """

    system: System
    runs: AlignedRuns
    measure: Measure
    parameters: tuple[Parameter, ...]
    spaces: Mapping[str, ScoreSpace] = field(default_factory=dict)
    qrels: Qrels | None = None
    contents: Fingerprint = field(kw_only=True)
    later_trials: tuple[AlignedRuns, ...] = field(default=(), kw_only=True)

    def __repr__(self) -> str:
        """The system, the measure, and how many queries and parameters."""
        sizes = (pluralize(len(self.runs.queries), "query"), len(self.parameters))
        return (
            f"TuningObjective({self.system.name!r}, {self.measure.name}, {sizes[0]}, "
            f"{pluralize(sizes[1], 'parameter')})"
        )

    @cached_property
    def source_roles(self) -> SourceRoles:
        """Roles of the system's sources."""
        return source_roles(self.system, self.runs)

    @cached_property
    def group_codes(self) -> IntArray:
        """(Q,): codes of the queries' groups."""
        return number_by_appearance(self.runs.groups)[0]

    @cached_property
    def default_params(self) -> Params:
        """The values of the active parameters in the default system."""
        params: dict[str, Value] = {}
        for parameter in self.parameters:
            value = read_parameter(self.system, parameter.path, self.source_roles)
            if value is not ABSENT and parameter.is_active(params):
                params[parameter.path] = value
        return params

    @cached_property
    def preset_params(self) -> tuple[Params, ...]:
        """The default with each preset of its methods."""
        return preset_params(self.system, self.parameters, self.default_params)

    @cached_property
    def fingerprint(self) -> Fingerprint:
        """All that a trial's value depends on but its parameters."""
        runs = self.runs
        settings = {
            "system": self.system.model_dump(mode="json"),
            "measure": self.measure.model_dump(mode="json"),
            "parameters": {p.path: repr(p) for p in self.parameters},
            "ties": runs.ties,
            "score_spaces": self.spaces,
        }
        queries = Fingerprint({"tuning queries": hash_values(sorted(runs.queries))})
        return self.contents | Fingerprint.of_settings(settings) | queries

    def contains(self, params: Params) -> bool:
        """Whether these values are a point of the space: every active parameter, nothing else."""
        active = [p for p in self.parameters if p.is_active(params)]
        return {p.path for p in active} == set(params) and all(
            p.contains(params[p.path]) for p in active
        )

    def normalize_weights(self, params: Params) -> Params:
        """The same system's parameters with normalized weights, where only their ratio counts.

        Args:
            params: Any; those of a system that cannot be built stay as they are.
        """
        return normalize_weights(params, self.parameters, self.free_weights(params))

    def free_weights(self, params: Params) -> frozenset[str]:
        """The paths of the weights of which only the ratio counts; none if it cannot be built."""
        # All that decides: the paths, the choices, and the zeros.
        key = tuple(
            (path, value == 0 if isinstance(value, float | int) else value)
            for path, value in params.items()
        )
        if key not in self._free_by_structure:
            try:
                system = self.build_system(params)
            except FusionBenchError:
                return frozenset()
            free = find_free_weights(system, params, self.source_roles)
            self._free_by_structure[key] = free
        return self._free_by_structure[key]

    @cached_property
    def _free_by_structure(self) -> dict[Hashable, frozenset[str]]:
        """Free weights by the structure of the parameters."""
        return {}

    def build_system(self, params: Params) -> System:
        """The system with these values; the default itself stays as it is written.

        Raises:
            ConfigError: A value that its method refuses.
        """
        if params == self.default_params:
            return self.system
        return apply_parameters(self.system, params, self.source_roles)

    def evaluate_params(self, trials: Sequence[Params]) -> FloatArray:
        """The measure of each trial on every query.

        Returns:
            Shape (T, Q); NaN in all of a trial that cannot be computed (every weight is 0, a
            normalizer that refuses these scores). Values do not depend on the other trials, to the
            last bit.
        """
        try:
            values = self._evaluate_systems([self.build_system(params) for params in trials])
        except FusionBenchError:
            values = np.full((len(trials), len(self.runs.queries)), np.nan)
            for row, params in zip(values, trials, strict=True):
                with contextlib.suppress(FusionBenchError):
                    row[:] = self._evaluate_systems([self.build_system(params)])[0]
        make_readonly(values)
        return values

    def failure_reason(self, params: Params) -> str | None:
        """Why a trial cannot be computed; None = it can."""
        try:
            self._evaluate_systems([self.build_system(params)])
        except FusionBenchError as error:
            return str(error)
        return None

    def subset_queries(self, keep: BoolArray) -> TuningObjective:
        """The same on only the queries where ``keep``, shape (Q,), is true."""
        if keep.all():
            return self
        later = tuple(runs.subset(keep) for runs in self.later_trials)
        return replace(self, runs=self.runs.subset(keep), later_trials=later)

    def unit_points(self, trials: Sequence[Params]) -> FloatArray:
        """Positions in the unit cube, shape (T, D); NaN for a parameter that takes no part."""
        points = np.full((len(trials), len(self.parameters)), np.nan)
        for row, params in zip(points, trials, strict=True):
            for d, parameter in enumerate(self.parameters):
                if parameter.path in params:
                    row[d] = parameter.unit_position(params[parameter.path])
        return points

    def evaluate_by_trial(self, system: System) -> FloatArray | None:
        """The measure of a system on each trial of its lists, (T, Q); None = there is one.

        Raises:
            FusionBenchError: It cannot be computed.
        """
        if not self.later_trials:
            return None
        trials = (self.runs, *self.later_trials)
        return np.stack([self._evaluate_trial([system], runs)[0] for runs in trials])

    def _evaluate_systems(self, systems: Sequence[System]) -> FloatArray:
        values = self._evaluate_trial(systems, self.runs)
        if not self.later_trials:
            return values
        later = [self._evaluate_trial(systems, runs) for runs in self.later_trials]
        return mean_of_trials(np.stack([values, *later])).copy()

    def _evaluate_trial(self, systems: Sequence[System], runs: AlignedRuns) -> FloatArray:
        scores = evaluate_systems(
            systems, runs, [self.measure], spaces=self.spaces, qrels=self.qrels
        )
        return np.array([each.values[0] for each in scores])
