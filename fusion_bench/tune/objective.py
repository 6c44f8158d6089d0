"""The objective of a search: a system's measure on the tuning queries by parameter set.

In most systems scaling all weights by one factor changes no rank. Such weights are divided by the
greatest one (weights by query type by their sum). Then equal systems have equal parameters: folds
that agree look alike, and a sampler does not try one system twice.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Hashable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

import numpy as np

from fusion_bench.config.parameters import Parameter, Params, Value
from fusion_bench.config.yaml_files import Source
from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.ordering import BoolArray, FloatArray, make_readonly
from fusion_bench.data.records import Query
from fusion_bench.errors import ConfigError, DataError, FusionBenchError, UnknownNameError
from fusion_bench.evaluation.crag import absolute_rerankers
from fusion_bench.evaluation.prepared_dataset import ALL_JUDGED, prepare_dataset
from fusion_bench.experiment.dialect import SAME_ORDER, describe_dialect, find_engine
from fusion_bench.experiment.experiment import Experiment, read_experiment
from fusion_bench.experiment.settings import ParameterRange, TuneSettings
from fusion_bench.experiment.system import System, merge_rules
from fusion_bench.io.dataset import Dataset, load_dataset
from fusion_bench.io.dataset_config import read_spec
from fusion_bench.io.fingerprints import Fingerprint
from fusion_bench.measures import Measure, parse_measure
from fusion_bench.methods.blend.formulas import NoBlend, Replace
from fusion_bench.ranking.system_scores import evaluate_systems
from fusion_bench.tune import space
from fusion_bench.util.digests import hash_values
from fusion_bench.util.formatting import pluralize

#: Retrieval terms that divide out the scale of the fused scores.
DIVIDED = ("fused_min_max", "fused_max_possible")
#: Values of queries (32 MB), and systems, that are kept for the next question.
MOST_VALUES, MOST_SYSTEMS = 4_000_000, 500


def normalize_weights(params: Params, parameters: Sequence[Parameter], free: Set[str]) -> Params:
    """Scale the weights so that the greatest of each free group is 1; no rank changes.

    Where a range does not allow 1, it is as near to 1 as all ranges allow, which still depends only
    on the ratio. Parameters with steps stay as they are.

    Args:
        params: Path → value.
        parameters: The space.
        free: What :func:`find_free_weights` returns for these.
    """
    known = {parameter.path: parameter for parameter in parameters if parameter.path in free}
    normalized = dict(params)
    for (_, are_shares), names in _weight_groups(params).items():
        members = {path: known[path] for path in names if path in known}
        if len(members) == len(names):
            normalized |= _divide_weights(params, members, by_sum=are_shares)
    return normalized


def find_free_weights(system: System, params: Params, roles: space.SourceRoles) -> frozenset[str]:
    """The paths of the weights of which only the ratio counts.

    Args:
        system: With these values.
        params: Path → value.
        roles: Of the system's sources.
    """
    return frozenset(
        path
        for (query_class, are_shares), names in _weight_groups(params).items()
        if _is_free(system, query_class, are_shares, set(names.values()), roles)
        for path in names
    )


def _weight_groups(params: Params) -> dict[tuple[str, bool], dict[str, str]]:
    """Weights that are scaled together: their paths, each with the name or role of its source.

    The key says whose they are (empty = of all queries), and whether they add up to 1.
    """
    groups: dict[tuple[str, bool], dict[str, str]] = {}
    for path in params:
        plain, name = space.strip_conditions(path), ""
        if share := space.TYPE_WEIGHT.fullmatch(plain):
            groups.setdefault((share[1], True), {})[path] = share[2]
            continue
        if match := space.CLASS_PATH.fullmatch(plain):
            name, plain = match[2], match[3]
        if weight := space.SOURCE_WEIGHT.fullmatch(plain):
            groups.setdefault((name, False), {})[path] = weight[1]
    return groups


def _is_free(
    system: System, query_class: str, are_shares: bool, names: Set[str], roles: space.SourceRoles
) -> bool:
    """Whether scaling these weights changes no rank: the group has all of them."""
    if are_shares:
        by_type = system.weights_by_type if system.weights_by_type is not None else {}
        return all(key in names for key, w in by_type.get(query_class, {}).items() if w > 0)
    if system.weights_by_type is not None:
        return False
    plain = system.of_class(query_class) if query_class else system
    if any(names.isdisjoint({name, *roles[name]}) for name in plain.runs):
        return False
    # From here on: whether nothing after the fusion sees the scale of its scores.
    homogeneity = plain.fusion.weight_homogeneity
    if homogeneity == 0:
        return True
    if not plain.fusion.weight_scale_invariant or plain.min_relevance is not None:
        return False
    if isinstance(plain.blend, NoBlend | Replace):
        return True
    retrieval = getattr(plain.blend, "retrieval", None)
    return retrieval == "reciprocal_rank" or (homogeneity == 1 and retrieval in DIVIDED)


def _divide_weights(
    params: Params, members: Mapping[str, Parameter], *, by_sum: bool
) -> dict[str, Value]:
    """The weights over one divisor, inside their ranges; nothing where that cannot be."""
    for path, p in members.items():
        if p.kind != "float" or p.step is not None or not p.contains(params[path]):
            return {}
    weights = {path: float(str(params[path])) for path in members}
    positive = {path: weight for path, weight in weights.items() if weight > 0}
    if not positive:
        return {}
    divisor: float = sum(positive.values(), 0.0) if by_sum else max(positive.values())
    divisor = max(divisor, *(w / members[path].bounds[1] for path, w in positive.items()))
    lows = {path: members[path].bounds[0] for path in positive}
    divisor = min([divisor, *(w / lows[path] for path, w in positive.items() if lows[path] > 0)])
    if divisor == 1:
        return {}
    return {path: members[path].round_value(w / divisor) for path, w in positive.items()}


def params_key(params: Params) -> str:
    """The parameters as a string, the same in any order."""
    return json.dumps(dict(params), sort_keys=True)


def express_in_engine(
    experiment: Experiment,
    source: Source,
    tuning: TuneSettings,
    roles: Mapping[str, frozenset[str]],
) -> Experiment:
    """The experiment whose tuned system is the engine's own, with the same order on any lists.

    Args:
        experiment: The experiment.
        source: Where it was read from.
        tuning: Which system, and which engine; without one nothing changes.
        roles: Of the dataset's lists, by name.

    Raises:
        ConfigError: The engine cannot express the system; says what is lost, and what it can.
    """
    if tuning.engine is None:
        return experiment
    dialect = find_engine(tuning.engine, where="--engine")
    system = experiment.systems[tuning.system]
    if system.dialect == dialect.name:
        return experiment
    translation = dialect.translate(system, roles)
    if translation.system is None or translation.fidelity not in SAME_ORDER:
        others = experiment.systems.values()
        able = [each.name for each in others if dialect.keeps_order(each, roles)]
        raise ConfigError(
            f"{source.where(('systems', system.name))}: --engine {tuning.engine}: "
            f"{translation.reasons[0]}: tune a system that it can express (of this experiment: "
            f"{', '.join(able) or 'none'}), or leave out --engine. {describe_dialect(dialect)}"
        )
    return experiment.model_copy(
        update={"systems": {**experiment.systems, system.name: translation.system}}
    )


def source_roles(system: System, runs: AlignedRuns) -> space.SourceRoles:
    """Roles of the system's sources, and of the runs that its stages read."""
    names = system.base_runs
    base = {name: runs.roles[i] for name, i in zip(names, runs.rows(names), strict=True)}
    return space.stage_roles(system, base)


@dataclass(frozen=True, eq=False, repr=False)
class TuningObjective:
    """A system, its parameters, and the queries and the measure that evaluate them.

    Attributes:
        system: The default; everything that is not a parameter stays as it is there.
        runs: All Q queries; with several repeats of the lists those that all of them have. A value
            is the mean over these.
        measure: What is maximized.
        parameters: The D dimensions of the space, each after those that it depends on.
        contents: Fingerprint of the dataset that all of these come from.
        others: Measures that the report gives beside it.
    """

    system: System
    runs: AlignedRuns
    measure: Measure
    parameters: tuple[Parameter, ...]
    contents: Fingerprint = field(kw_only=True)
    others: tuple[Measure, ...] = field(default=(), kw_only=True)

    def __repr__(self) -> str:
        """The system, the measure, and how many queries and parameters."""
        sizes = (pluralize(len(self.runs.queries), "query"), len(self.parameters))
        return (
            f"TuningObjective({self.system.name!r}, {self.measure.name}, {sizes[0]}, "
            f"{pluralize(sizes[1], 'parameter')})"
        )

    @cached_property
    def source_roles(self) -> space.SourceRoles:
        """Roles of the system's sources."""
        return source_roles(self.system, self.runs)

    @cached_property
    def default_params(self) -> Params:
        """The values of the active parameters in the default system."""
        params: dict[str, Value] = {}
        for parameter in self.parameters:
            value = space.read_parameter(self.system, parameter.path, self.source_roles)
            if value is not space.ABSENT and parameter.is_active(params):
                params[parameter.path] = value
        return params

    @cached_property
    def preset_params(self) -> tuple[Params, ...]:
        """The default with each preset of its methods."""
        return space.preset_params(self.system, self.parameters, self.default_params)

    @cached_property
    def fingerprint(self) -> Fingerprint:
        """Fingerprint of all that a trial's value depends on besides its parameters."""
        runs = self.runs
        settings = {
            "system": self.system.model_dump(mode="json"),
            "measure": self.measure.model_dump(mode="json"),
            "parameters": {p.path: repr(p) for p in self.parameters},
            "ties": runs.ties,
            "score_spaces": runs.spaces,
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
        """Normalize the weights of which only the ratio counts.

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
        key = params_key(params)
        if key not in self._systems:
            if len(self._systems) >= MOST_SYSTEMS:
                self._systems.clear()
            self._systems[key] = space.apply_parameters(self.system, params, self.source_roles)
        return self._systems[key]

    @cached_property
    def _systems(self) -> dict[str, System]:
        """The systems that were built last, by their parameters."""
        return {}

    @cached_property
    def _known_values(self) -> dict[str, FloatArray]:
        """(Q,) by parameters: as many as memory is meant for."""
        return {}

    @cached_property
    def _parts(self) -> dict[bytes, TuningObjective]:
        """The first selection of queries, and the last."""
        return {}

    def evaluate_params(self, trials: Sequence[Params]) -> FloatArray:
        """The measure of each trial on every query.

        Returns:
            Shape (T, Q); NaN in all of a trial that cannot be computed (every weight is 0, a
            normalizer that refuses these scores). Values do not depend on the other trials, to the
            last bit.
        """
        keys = [params_key(params) for params in trials]
        new = {k: p for k, p in zip(keys, trials, strict=True) if k not in self._known_values}
        try:
            computed = self._evaluate_systems(
                [self.build_system(params) for params in new.values()]
            )
        except FusionBenchError:
            computed = np.full((len(new), len(self.runs.queries)), np.nan)
            for row, params in zip(computed, new.values(), strict=True):
                with contextlib.suppress(FusionBenchError):
                    row[:] = self._evaluate_systems([self.build_system(params)])[0]
        fresh = dict(zip(new, computed, strict=True))
        if (len(self._known_values) + len(fresh)) * len(self.runs.queries) <= MOST_VALUES:
            self._known_values.update(fresh)
        rows = [fresh[key] if key in fresh else self._known_values[key] for key in keys]
        values = np.array(rows).reshape(len(rows), len(self.runs.queries))
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
        """The objective on the queries where ``keep``, shape (Q,), is true."""
        if keep.all():
            return self
        key = keep.tobytes()
        if key not in self._parts:
            if len(self._parts) > 1:
                self._parts.popitem()
            self._parts[key] = replace(self, runs=self.runs.subset(keep))
        return self._parts[key]

    def unit_points(self, trials: Sequence[Params]) -> FloatArray:
        """Positions in the unit cube, shape (T, D); NaN for a parameter that takes no part."""
        points = np.full((len(trials), len(self.parameters)), np.nan)
        for row, params in zip(points, trials, strict=True):
            for d, parameter in enumerate(self.parameters):
                if parameter.path in params:
                    row[d] = parameter.unit_position(params[parameter.path])
        return points

    def evaluate_by_repeat(self, system: System) -> FloatArray | None:
        """The measure of a system on each repeat of its lists, (T, Q); None = there is one.

        Raises:
            FusionBenchError: It cannot be computed.
        """
        if not self.runs.later:
            return None
        [scores] = evaluate_systems([system], self.runs, [self.measure])
        counted = len(self.runs.repeats) // len(scores.repeats)  # > 1: it reads no such list
        return np.repeat(scores.repeats[:, 0], counted, axis=0)

    def _evaluate_systems(self, systems: Sequence[System]) -> FloatArray:
        scores = evaluate_systems(systems, self.runs, [self.measure])
        return np.array([each.values[0] for each in scores])


def load_tuning_dataset(
    experiment: Experiment, source: Source, tuning: TuneSettings, path: Path
) -> Dataset:
    """Check a dataset against what is tuned, and read only the lists that it needs.

    Raises:
        FusionBenchError: The system does not fit the dataset, or a file breaks a rule.
    """
    system = experiment.systems[tuning.system]
    spec, _ = read_spec(path)
    for location, problem in system.find_misfits(spec.run_roles, tuple(spec.rerank)):
        where = source.where(("systems", system.name, *location))
        raise ConfigError(f"{where}: {problem}")
    chosen = [
        (str(name), ("parameters", path))
        for path, given in (tuning.parameters or {}).items()
        if path.endswith("blend.reranker") and isinstance(given, ParameterRange)
        for name in given.choices
    ]
    priced = [(name, ("effort", "rerankers")) for name in tuning.effort.rerankers]
    for name, place in (*chosen, *priced):
        if name not in spec.rerank:
            at = source.where(("tune", *place))
            raise UnknownNameError("reranker", name, spec.rerank, where=at)
    spaces = {name: rerank.score_space for name, rerank in spec.rerank.items()}
    judged = () if tuning.crag is None else absolute_rerankers(spaces)
    rerankers = system.reranker_names | {name for name, _ in chosen} | set(judged)
    dataset = load_dataset(
        path, runs=set(system.base_runs), rerankers=rerankers, merged=merge_rules([system])
    )
    for name in dataset.rerankers if tuning.degraded == "refuse" else ():
        if (reason := dataset.degradation(name)) is not None:
            raise DataError(f"{path}: {reason}")
    return dataset


def create_objective(
    experiment: Experiment,
    source: Source,
    tuning: TuneSettings,
    dataset: Dataset,
) -> TuningObjective:
    """Create the objective of a system on every judged query of a dataset.

    Raises:
        ConfigError: A path or range that does not fit; says where it stands.
    """
    system: System = experiment.systems[tuning.system]
    key, asked = system.class_key, tuning.class_key
    if key is not None and asked is not None and system.class_configs is not None:
        raise ConfigError(
            f"{source.where(('systems', system.name))}: has numbers by {key.title} already: tune a "
            f"plain system, and write '{asked.key}: true' under tune for numbers by {asked.field}"
        )
    changed = {"systems": {system.name: system}, **ALL_JUDGED}
    task = prepare_dataset(experiment.model_copy(update=changed), source, dataset)
    measure = task.measures[0]
    if tuning.measure is not None:
        measure = parse_measure(
            tuning.measure,
            binary_relevance=dataset.spec.binary_relevance,
            where=source.where(("tune", "measure")),
        )
    roles = source_roles(system, task.runs)
    ranges = tuning.parameters
    if tuning.engine is not None and ranges is None and system.class_configs is None:
        methods = []  # the choice among those of the engine
        for name in system.fusions.load_built_in():
            with contextlib.suppress(FusionBenchError):  # it needs what only a user can name
                no_roles = [frozenset[str]() for _ in system.runs]
                space.with_fusion(system, name).check_sources(system.runs, no_roles)
                methods.append(name)
        if len(methods) > 1:
            ranges = {"fusion.method": ParameterRange(choices=tuple(methods))}
            if system.blend.space():
                ranges = {**ranges, "blend": "own"}
    try:
        parameters = space.build_search_space(system, ranges, roles)
    except ConfigError as error:
        raise ConfigError(f"{source.where(('tune', 'parameters'))}: {error}") from None
    return TuningObjective(
        system,
        task.runs.common_repeats(),
        measure,
        parameters,
        contents=task.dataset.contents,
        others=tuple(other for other in task.measures if other != measure)[:1],
    )


@dataclass(frozen=True)
class ObjectivePaths:
    """The files of an objective, so that another process can open it.

    Attributes:
        experiment: The experiment's file.
        dataset: The ``dataset.yaml``.
        tuning: As the experiment and the command line say.
        v2_enabled: As ``RAG_FUSION_V2_ENABLED`` says.
        overrides: Values that replace the experiment's, as ``KEY=VALUE``.
        fingerprint: Of the objective that must be there; None = any.
    """

    experiment: Path
    dataset: Path
    tuning: TuneSettings = field(hash=False)
    v2_enabled: bool = True
    overrides: tuple[str, ...] = ()
    fingerprint: Fingerprint | None = field(default=None, compare=False)

    def open(self) -> tuple[TuningObjective, Mapping[str, Query]]:
        """The objective on all judged queries, and what is known of the queries.

        Raises:
            FusionBenchError: A file breaks a rule, or contents differ from the fingerprint.
        """
        experiment, source = read_experiment(
            self.experiment, overrides=self.overrides, v2_enabled=self.v2_enabled
        )
        dataset = load_tuning_dataset(experiment, source, self.tuning, self.dataset)
        experiment = express_in_engine(experiment, source, self.tuning, dataset.spec.run_roles)
        objective = create_objective(experiment, source, self.tuning, dataset)
        expected = objective.fingerprint if self.fingerprint is None else self.fingerprint
        if expected != objective.fingerprint:
            raise ConfigError(
                f"{self.dataset}: a worker reads other data there than this machine "
                f"({objective.fingerprint.summarize_changes(expected)}): give all of them the same "
                "files under the same path"
            )
        return objective, dataset.queries
