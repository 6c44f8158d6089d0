"""An experiment file: what is compared on what, checked before anything is computed."""

from __future__ import annotations

import logging
import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Final, TypeVar

from pydantic import BeforeValidator, Field, PrivateAttr, model_validator
from pydantic_core import PydanticCustomError

from fusion_bench.config.models import Location, StrictModel, UniqueNames, parse_model
from fusion_bench.config.query_types import FieldConditions, FieldNames
from fusion_bench.config.yaml_files import Source, read_yaml
from fusion_bench.data.aligned_runs import Ties
from fusion_bench.errors import ConfigError, UnknownNameError
from fusion_bench.experiment import DEFAULT_MEASURES
from fusion_bench.experiment.overrides import apply_overrides, expand_sweeps
from fusion_bench.experiment.settings import CragSettings, GatePolicy, TuneSettings, locate_check
from fusion_bench.experiment.system import PerTypeConfig, System, resolve_named_stages
from fusion_bench.io.dataset_config import DatasetSpec, find_dataset, read_spec
from fusion_bench.measures import Measure, parse_measure
from fusion_bench.measures._base import is_bounded
from fusion_bench.measures.aliases import MeasureName
from fusion_bench.methods.blend import RerankBlend
from fusion_bench.methods.blend.formulas import PositionAware, Replace
from fusion_bench.methods.fuse.rrf import RRF, RRFv2
from fusion_bench.stats.comparison_family import MIN_GAIN
from fusion_bench.util.files import resolve_path
from fusion_bench.util.formatting import Columns, TableView, pluralize

log = logging.getLogger("fusion_bench.experiment")

Config = TypeVar("Config", System, PerTypeConfig)
V2_VARIABLE = "RAG_FUSION_V2_ENABLED"
#: Its values, in any capitals → whether version 2 runs.
SWITCH_VALUES: Final = {
    **dict.fromkeys(("1", "true", "t", "yes", "y", "on"), True),
    **dict.fromkeys(("0", "false", "f", "no", "n", "off"), False),
}


def is_v2_enabled() -> bool:
    """Value of ``RAG_FUSION_V2_ENABLED``; true if it is not set or empty.

    Raises:
        ConfigError: It is neither true nor false.
    """
    value = os.environ.get(V2_VARIABLE, "").strip()
    stated = SWITCH_VALUES.get((value or "true").lower())
    if stated is None:
        raise ConfigError(
            f"{V2_VARIABLE}: {value!r} is neither true (1, true, yes, on) nor false (0, false, "
            "no, off)"
        )
    return stated


def apply_switch(system: System) -> System:
    """A system that stands in no experiment as ``RAG_FUSION_V2_ENABLED`` has it, which is logged.

    Raises:
        ConfigError: The variable is neither true nor false.
    """
    changed = system if is_v2_enabled() else replace_v2(system)
    if changed != system:
        log.warning(describe_switch([system.name]))
    return changed


def describe_switch(systems: Sequence[str]) -> str:
    """That some systems run as version 1, in the words of every command and file."""
    names = ", ".join(map(repr, systems))
    verb = "system {} runs" if len(systems) == 1 else "systems {} run"
    return f"{V2_VARIABLE} is off: {verb.format(names)} as version 1"


def replace_v2(config: Config) -> Config:
    """A configuration with ``rrf`` for ``rrf_v2`` and ``replace`` for ``position_aware``.

    Its stages too. The fusion keeps k and its normalization, and loses its weights and its bonus.
    The blend keeps what every blend with a reranker has. A system of the dialect ``qmd``, which has
    no such switch, stays as it is.
    """
    if isinstance(config, System) and config.dialect == "qmd":
        return config
    fusion = config.fusion
    if isinstance(fusion, RRFv2):
        fusion = RRF(k=fusion.k, normalize=fusion.normalize)
    changed: dict[str, Any] = {"fusion": fusion}
    if isinstance(config.blend, PositionAware):
        shared = set(RerankBlend.model_fields) - {"method"}
        changed["blend"] = Replace(**config.blend.model_dump(include=shared))
    if isinstance(config, System) and config.class_configs is not None:
        by_class = config.class_configs.items()
        changed[config.class_field] = {name: replace_v2(part) for name, part in by_class}
    if isinstance(config, System) and config.stages is not None:
        changed["stages"] = {name: replace_v2(stage) for name, stage in config.stages.items()}
    return config.model_copy(update=changed)


def _add_names(data: Any) -> Any:  # noqa: ANN401 - anything may stand in YAML
    """Give each system the name that its key states.

    Raises:
        ValueError: A system has a ``name`` too, which would be lost.
    """
    if not isinstance(data, Mapping):
        return data
    for i, (name, spec) in enumerate(data.items()):
        if isinstance(spec, Mapping) and "name" in spec:
            raise ValueError(f"{name}: the key is the system's name: remove 'name'")
        if name in System.model_fields and not (isinstance(spec, Mapping) and "runs" in spec):
            owner = repr(str([*data][i - 1])) if i else "a system"
            text = f"is `{name}:` indented too little? A key of a system belongs below {owner}"
            raise PydanticCustomError("unknown_key", "{text}", {"text": text, "key": name})
    return resolve_named_stages(data)


class LintSettings(StrictModel):
    """What ``fusion-bench lint`` and the tops of all pages leave out.

    Attributes:
        ignore: Ids of rules; ``docs/reference/lint.md`` lists them.
    """

    ignore: UniqueNames = ()


class Experiment(TableView, StrictModel):
    """The content of an experiment's YAML file, with every default.

    Attributes:
        description: One line for the report's head.
        caveat: A limit of the data that every report states.
        dataset: One dataset, by name or path …
        datasets: … or several.
        measures: Names as ir_measures names them; the first is the primary one.
        baseline: The system that the others are compared with.
        systems: What is compared, by name.
        split: Which split to evaluate; by default ``test`` where the dataset has one; ``all``.
        query_type: Only queries of this type.
        where: Only queries with one of these values in each of these fields.
        slices: Fields of the queries by which the report breaks down the primary measure.
        ties: The tie rule: ``trec`` or ``first_seen``.
        alpha: Level of intervals and tests.
        min_gain: A smaller difference in the primary measure is not worth a change; the default of
            ``tune.min_gain``.
        tune: What ``fusion-bench tune`` searches; ``eval`` does not look at it.
        seed: Of all random numbers.
        gate: What ``fusion-bench gate`` checks.
        crag: Thresholds of the verdicts that ``eval`` reports of each list with absolute scores;
            None = no verdicts.
        lint: Findings about the configuration that are accepted.
        expected_lint: Rules of ``docs/reference/lint.md`` that systems break on purpose, as bad
            examples: their findings are notes, no warnings.
    """

    old_keys: ClassVar[Mapping[str, str]] = {
        "interval": "unknown key 'interval': one rule gives all intervals: delete it"
    }
    ignored_keys: ClassVar[Mapping[str, str]] = {
        "correction": "intervals and p of all comparisons hold together",
        "resamples": "10,000 draws decide, or more where alpha is below .004",
    }

    description: str = ""
    caveat: str = ""
    dataset: str | None = None
    datasets: UniqueNames = ()
    measures: Annotated[tuple[MeasureName, ...], Field(min_length=1)] = DEFAULT_MEASURES
    baseline: str
    systems: Annotated[dict[str, System], Field(min_length=1), BeforeValidator(_add_names)]
    split: str | None = None
    query_type: str | None = None
    where: FieldConditions = Field(default_factory=dict)
    slices: FieldNames = ("type",)
    ties: Ties = "trec"
    alpha: Annotated[float, Field(gt=0, lt=1)] = 0.05
    min_gain: Annotated[float, Field(ge=0, allow_inf_nan=False)] = MIN_GAIN
    tune: TuneSettings | None = None
    seed: Annotated[int, Field(ge=0)] = 7
    gate: GatePolicy | None = None
    crag: CragSettings | None = None
    lint: LintSettings = LintSettings()
    expected_lint: UniqueNames = ()
    _v2_enabled: bool = PrivateAttr(default=True)
    _switched: tuple[str, ...] = PrivateAttr(default=())

    @model_validator(mode="before")
    @classmethod
    def _share_min_gain(cls, data: Any) -> Any:  # noqa: ANN401 - anything may stand in YAML
        tune = data.get("tune") if isinstance(data, Mapping) else None
        if isinstance(tune, Mapping) and "min_gain" in data:
            return {**data, "tune": {"min_gain": data["min_gain"], **tune}}
        return data

    @model_validator(mode="after")
    def _check_datasets_given(self) -> Experiment:
        if (self.dataset is None) == (not self.datasets):
            given = "neither is given" if self.dataset is None else "both are given"
            raise ValueError(f"name one 'dataset', or several 'datasets': {given}")
        if self.query_type is not None and "type" in self.where:
            raise ValueError("query_type and where.type mean the same: keep one")
        return self

    def _summary(self) -> str:
        systems = pluralize(len(self.systems), "system")
        parts = (systems, f"baseline {self.baseline}", ", ".join(self.measures))
        return f"Experiment({', '.join(self.dataset_names)}: {'; '.join(parts)})"

    def _table_columns(self, limit: int | None = None) -> Columns:
        """One row a system."""
        systems = list(self.systems.values())[:limit]
        return {
            "system": [system.name for system in systems],
            "runs": [", ".join(system.runs) for system in systems],
            "fusion": [system.fusion.method for system in systems],
            "blend": [system.blend.method for system in systems],
            "reranker": [", ".join(sorted(system.reranker_names)) for system in systems],
        }

    if not TYPE_CHECKING:

        def __new__(cls, *given: object, **_keys: object) -> Experiment:
            """Refuse arguments by position, with which PyTerrier compares systems."""
            if given:
                raise TypeError(
                    "Experiment takes keys as a YAML file has them: use compare(qrels, runs, "
                    "systems, measures)"
                )
            return super().__new__(cls)

    def find_system(self, name: str, where: str = "--system") -> System:
        """The system of a name.

        Args:
            name: The name.
            where: Prefix of the message that says where the name stands.

        Raises:
            UnknownNameError: There is none.
        """
        if name not in self.systems:
            raise UnknownNameError("system", name, self.systems, where=where)
        return self.systems[name]

    @property
    def dataset_names(self) -> tuple[str, ...]:
        """The datasets, one or several."""
        return self.datasets if self.dataset is None else (self.dataset,)

    @property
    def query_filters(self) -> dict[str, tuple[str, ...]]:
        """Field → values that a query must have: those of ``where``, and the query type."""
        return self.where | ({} if self.query_type is None else {"type": (self.query_type,)})

    @property
    def v2_enabled(self) -> bool:
        """Whether version 2 of fusion and blend runs where a system asks for it."""
        return self._v2_enabled

    @property
    def switched_systems(self) -> tuple[str, ...]:
        """The systems that the switch changed."""
        return self._switched

    def apply_switch(self, *, v2_enabled: bool | None = None) -> Experiment:
        """The experiment as the switch has it, which is logged if the variable decides.

        Args:
            v2_enabled: False = version 1 of fusion and blend runs instead of version 2; None = as
                ``RAG_FUSION_V2_ENABLED`` says.

        Raises:
            ConfigError: The variable is neither true nor false.
        """
        if is_v2_enabled() if v2_enabled is None else v2_enabled:
            return self
        changed = self.without_v2()
        if v2_enabled is None and changed.switched_systems:
            log.warning(describe_switch(changed.switched_systems))
        return changed

    def without_v2(self) -> Experiment:
        """Replace version 2 of fusion and blend by version 1 in every system."""
        systems = {name: replace_v2(system) for name, system in self.systems.items()}
        changed = self.model_copy(update={"systems": systems})
        changed._v2_enabled = False
        changed._switched = tuple(name for name in systems if systems[name] != self.systems[name])
        return changed

    @property
    def gated_system(self) -> System | None:
        """The system that the gate guards; None where the experiment leaves that open."""
        named = None if self.gate is None else self.gate.system
        rest = [name for name in self.systems if len(self.systems) == 1 or name != self.baseline]
        if named is None and len(rest) == 1:
            named = rest[0]
        return None if named is None else self.systems[named]

    def parse_measures(self, binary_relevance: int, source: Source) -> tuple[Measure, ...]:
        """The measures as one dataset resolves them.

        Raises:
            UnknownNameError: No such measure.
            ConfigError: Two names mean the same measure.
        """
        measures: list[Measure] = []
        for i, text in enumerate(self.measures):
            where = source.where(("measures", i))
            measure = parse_measure(text, binary_relevance=binary_relevance, where=where)
            if measure in measures:
                raise ConfigError(f"{where}: {measure.name} is listed twice: keep one")
            measures.append(measure)
        return tuple(measures)

    def check_datasets(
        self, roles: Mapping[str, frozenset[str]], rerankers: Collection[str], source: Source
    ) -> None:
        """Refuse systems that do not fit a dataset.

        Raises:
            ConfigError: The first misfit, with file, line and path.
        """
        for name, system in self.systems.items():
            for location, problem in system.find_misfits(roles, tuple(rerankers)):
                raise ConfigError(f"{source.where(('systems', name, *location))}: {problem}")


#: The experiment of a folder.
EXPERIMENT_FILE: Final = "experiment.yaml"


def experiment_file(path: Path) -> Path:
    """The file of an experiment; of a folder that holds one, its file."""
    beside = path / EXPERIMENT_FILE
    return beside if beside.is_file() else path


def read_experiment(
    path: Path | str, *, overrides: Sequence[str] = (), v2_enabled: bool | None = None
) -> tuple[Experiment, Source]:
    """Read and check an experiment file.

    A list where one value belongs becomes one system a value.

    Args:
        path: The file, or a folder with an ``experiment.yaml``.
        overrides: ``KEY=VALUE`` each: values that replace the file's.
        v2_enabled: False = version 1 of fusion and blend runs instead of version 2; None = as
            ``RAG_FUSION_V2_ENABLED`` says.

    Returns:
        The experiment, and where each of its values stands.

    Raises:
        ConfigError: It breaks a rule; names file, line and path.
    """
    file = read_yaml(experiment_file(Path(path)))
    source, swept = expand_sweeps(apply_overrides(file, overrides))
    experiment = parse_model(Experiment, source.data, source.where)
    experiment = experiment.apply_switch(v2_enabled=v2_enabled)
    if experiment.gate is not None:
        for location, measure, limit in _list_limits(experiment.gate, source):
            if is_bounded(measure) and limit >= 1:
                raise ConfigError(
                    f"{source.where(location)}: less than 1 is needed, as {measure} has values "
                    f"from 0 to 1 and cannot fall by more than 1, given {limit:g}"
                )
        for i, guard in enumerate(experiment.gate.guards):
            if guard.max_share >= 1:
                where = source.where(("gate", "guards", i, "max_share"))
                raise ConfigError(
                    f"{where}: less than 1 is needed, as a guard that all queries may break checks "
                    f"nothing, given {guard.max_share:g}"
                )
    named = {
        ("baseline",): experiment.baseline,
        ("tune", "system"): None if experiment.tune is None else experiment.tune.system,
        ("gate", "system"): None if experiment.gate is None else experiment.gate.system,
    }
    for location, name in named.items():
        if name is not None and name not in experiment.systems:
            where = source.where(location)
            if name in swept:
                names = ", ".join(map(repr, swept[name]))
                raise ConfigError(f"{where}: {name!r} is a sweep: name one of {names}")
            raise UnknownNameError(location[-1], name, experiment.systems, where=where)
    return experiment, source


def _list_limits(policy: GatePolicy, source: Source) -> Iterator[tuple[Location, str, float]]:
    """Path, measure and value of each tolerance and of each guard's loss."""
    for name, tolerance in policy.tolerances.items():
        for key, limit in tolerance.stated_limits.items():
            yield (*locate_check(source, name), key), name, limit
    for i, guard in enumerate(policy.guards):
        yield ("gate", "guards", i, "max_loss"), guard.measure, guard.max_loss


def find_datasets(
    experiment: Experiment, source: Source, folders: Collection[Path]
) -> Iterator[tuple[str, Path]]:
    """The name and the ``dataset.yaml`` of each of an experiment's datasets.

    Raises:
        UnknownNameError: There is none of that name.
    """
    for i, name in enumerate(experiment.dataset_names):
        location = ("dataset",) if experiment.dataset is not None else ("datasets", i)
        where, base = source.where(location), source.path.parent
        yield name, find_dataset(name, folders, where=where, base=base)


def relocate_dataset(name: str, file: Path, folder: Path) -> str:
    """Rewrite a dataset's name or path for an experiment in another folder.

    Args:
        name: A dataset's name, or a path.
        file: The ``dataset.yaml`` that it stands for.
        folder: The other folder.

    Returns:
        A name as it is; instead of a relative path the path from the other folder.
    """
    given = Path(name)
    is_name = len(given.parts) == 1 and given.suffix not in {".yaml", ".yml"}
    if is_name or given.is_absolute():
        return name
    return os.path.relpath(resolve_path(file), resolve_path(folder))


def find_one_dataset(
    experiment: Experiment,
    source: Source,
    name: str | None,
    folders: Collection[Path],
    *,
    where: str = "--dataset",
) -> Path:
    """The ``dataset.yaml`` of one of an experiment's datasets.

    Args:
        experiment: The experiment.
        source: Where it was read from.
        name: As the experiment or its ``dataset.yaml`` names it; None = its only one.
        folders: Where named datasets live.
        where: Where the name stands, for messages.

    Raises:
        ConfigError: None is named of several.
        UnknownNameError: The experiment has none of that name, or it is not there.
    """
    names = experiment.dataset_names
    if name is None and len(names) > 1:
        raise ConfigError(
            f"the experiment has several datasets: choose one with {where}: {', '.join(names)}"
        )
    name = name or names[0]
    if name not in names:
        for _, path in find_datasets(experiment, source, folders):
            if read_spec(path)[0].name == name:
                return path
        raise UnknownNameError("dataset", name, names, where=where)
    return find_dataset(name, folders, where=str(source.path), base=source.path.parent)


def read_distinct_specs(paths: Iterable[Path]) -> Iterator[DatasetSpec]:
    """What each ``dataset.yaml`` says.

    Raises:
        ConfigError: Two datasets have the same name.
    """
    seen: dict[str, Path] = {}
    for path in paths:
        spec, where = read_spec(path)
        if spec.name in seen:
            raise ConfigError(
                f"{where.where(('name',))}: {seen[spec.name]} is named {spec.name!r} too: give "
                "each dataset its own name"
            )
        seen[spec.name] = path
        yield spec
