"""The objective that an experiment's ``tune:`` describes, from its files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from fusion_bench.config.files.yaml_source import Source
from fusion_bench.data.fingerprint import Fingerprint
from fusion_bench.data.records import Query
from fusion_bench.errors import ConfigError, DataError, UnknownNameError
from fusion_bench.evaluation.crag.evidence import absolute_rerankers
from fusion_bench.evaluation.prepared_dataset import ALL_JUDGED, prepare_dataset
from fusion_bench.experiment.experiment import Experiment, read_experiment
from fusion_bench.experiment.system import System
from fusion_bench.experiment.tune_settings import ParameterRange, TuneSettings
from fusion_bench.io.dataset import Dataset, load_dataset
from fusion_bench.io.dataset_config import read_spec
from fusion_bench.measures import parse_measure
from fusion_bench.tune.space.objective import TuningObjective, source_roles
from fusion_bench.tune.space.search_space import build_search_space


def load_tuning_dataset(
    experiment: Experiment, source: Source, tuning: TuneSettings, path: Path
) -> Dataset:
    """Check a dataset against what is tuned, and read only the lists that it needs.

    Raises:
        FusionBenchError: The system does not fit the dataset, or a file breaks a rule.
    """
    system = experiment.systems[tuning.system]
    spec, _ = read_spec(path)
    roles = {name: frozenset(run.roles) for name, run in spec.runs.items()}
    for location, problem in system.find_misfits(roles, tuple(spec.rerank)):
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
    dataset = load_dataset(path, runs=set(system.base_runs), rerankers=rerankers)
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
    """What is tuned, on every judged query of a dataset.

    Raises:
        ConfigError: A path or range that does not fit; says where it stands.
    """
    system: System = experiment.systems[tuning.system]
    key, asked = system.class_key, tuning.class_key
    if key is not None and asked is not None and system.class_configs is not None:
        raise ConfigError(
            f"{source.where(('systems', system.name))}: has numbers by {key.title} already: tune a "
            f"plain system, and say '{asked.key}: true' under tune for numbers by {asked.field}"
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
    try:
        parameters = build_search_space(system, tuning.parameters, roles)
    except ConfigError as error:
        raise ConfigError(f"{source.where(('tune', 'parameters'))}: {error}") from None
    return TuningObjective(
        system,
        task.runs,
        measure,
        parameters,
        dataset.spaces,
        dataset.qrels,
        contents=dataset.contents,
        later_trials=tuple(trial.runs for trial in task.trials[1 : task.dataset.count_trials()]),
    )


@dataclass(frozen=True)
class ObjectivePaths:
    """The files of an objective, so that another process can open it.

    Attributes:
        experiment: The experiment's file.
        dataset: The ``dataset.yaml``.
        tuning: As the experiment and the command line say.
        v2_enabled: As ``RAG_FUSION_V2_ENABLED`` says.
        overrides: Values that replace the experiment's, as ``PATH=VALUE``.
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
        objective = create_objective(experiment, source, self.tuning, dataset)
        expected = objective.fingerprint if self.fingerprint is None else self.fingerprint
        if expected != objective.fingerprint:
            raise ConfigError(
                f"{self.dataset}: a worker reads other data there than this machine "
                f"({objective.fingerprint.summarize_changes(expected)}): give all of them the same "
                "files under the same path"
            )
        return objective, dataset.queries
