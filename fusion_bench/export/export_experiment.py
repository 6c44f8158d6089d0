"""A system of an experiment, on its datasets, as an engine's configuration."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path

from fusion_bench.config.files.yaml_source import Source
from fusion_bench.data.switches import Condition
from fusion_bench.errors import ConfigError, UnknownNameError
from fusion_bench.evaluation.run_experiment import (
    Progress,
    find_datasets,
    ignore_progress,
    load_lists,
    read_distinct_specs,
)
from fusion_bench.experiment.experiment import Experiment
from fusion_bench.experiment.system import System
from fusion_bench.export.export_system import ExportData, ExportOptions, export_system
from fusion_bench.export.records import ExportReport
from fusion_bench.io.dataset import Dataset
from fusion_bench.io.dataset_search import find_dataset


def export_experiment(
    experiment: Experiment,
    source: Source,
    options: ExportOptions,
    *,
    folders: Collection[Path],
    system: str | None = None,
    dataset: str | None = None,
    progress: Progress = ignore_progress,
) -> ExportReport:
    """Write a system of an experiment for an engine; replay it where the order may change.

    Args:
        experiment: The experiment.
        source: Where it was read from.
        options: What to write.
        folders: Where named datasets live.
        system: Its name; by default as :func:`choose_system` says.
        dataset: A dataset by name or path; by default each of the experiment's that is there.
        progress: Called as the work goes on.

    Raises:
        FusionBenchError: The experiment or its data breaks a rule, or a name is unknown.
    """
    chosen = choose_system(experiment, system)
    changed = {"systems": {chosen.name: chosen}, "baseline": chosen.name}
    alone = experiment.model_copy(update=changed)
    data = _find_data(alone, source, folders, dataset, progress)
    return export_system(alone, source, chosen, data, options)


def choose_system(experiment: Experiment, name: str | None) -> System:
    """The system of that name; else the only one, or that of a ``tuned.yaml``.

    Raises:
        UnknownNameError: There is none of that name.
        ConfigError: Several, and none was named.
    """
    systems = experiment.systems
    if name is None:
        preferred = [known for known in systems if known.startswith(f"{experiment.baseline} tuned")]
        preferred += [*systems] if len(systems) == 1 else []
        name = next((known for known in preferred if known in systems), None)
    if name is None:
        raise ConfigError(f"--system: name one of the systems: {', '.join(systems)}")
    if name not in systems:
        raise UnknownNameError("system", name, systems, where="--system")
    return systems[name]


def _find_data(
    experiment: Experiment,
    source: Source,
    folders: Collection[Path],
    dataset: str | None,
    progress: Progress,
) -> ExportData:
    """The datasets; none where the experiment's own are not there.

    Raises:
        UnknownNameError: A dataset that was asked for is not there.
        ConfigError: The system does not fit one.
    """
    try:
        if dataset is None:
            paths = [path for _, path in find_datasets(experiment, source, folders)]
        else:
            paths = [find_dataset(dataset, folders, where="--dataset")]
    except UnknownNameError:
        if dataset is not None:
            raise
        return ExportData({})
    roles: dict[str, frozenset[str]] = {}
    conditions: dict[str, Condition] = {}
    is_judged = True
    for spec in read_distinct_specs(paths):
        is_judged = is_judged and spec.qrels is not None
        known = {name: frozenset(run.roles) for name, run in spec.runs.items()}
        experiment.check_datasets(known, spec.rerank, source)
        roles = known | roles  # of the first dataset that has the run
        conditions = {name: run.when for name, run in spec.runs.items() if run.when} | conditions

    def load(systems: Collection[System]) -> Iterator[Dataset]:
        for path in paths:
            yield load_lists(path, systems, progress, needs_judgments=False)

    return ExportData(roles, load, conditions, is_judged)
