"""Some systems of an experiment, on one of its datasets or on all of them."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

from fusion_bench.config.files.yaml_source import Source
from fusion_bench.errors import UnknownNameError
from fusion_bench.evaluation.prepared_dataset import EvaluationSet, prepare_dataset
from fusion_bench.evaluation.run_experiment import (
    Progress,
    find_datasets,
    ignore_progress,
    load_lists,
    read_distinct_specs,
)
from fusion_bench.experiment.experiment import Experiment


def select_systems(
    experiment: Experiment, systems: Sequence[str], dataset: str | None
) -> Experiment:
    """The experiment with the chosen systems and the baseline only, on the chosen dataset.

    Args:
        experiment: The experiment.
        systems: Names; empty = all.
        dataset: As the experiment names it; None = all of them.

    Raises:
        UnknownNameError: No such system or dataset.
    """
    for name in systems:
        if name not in experiment.systems:
            raise UnknownNameError("system", name, experiment.systems, where="--system")
    if dataset is not None and dataset not in experiment.dataset_names:
        raise UnknownNameError("dataset", dataset, experiment.dataset_names, where="--dataset")
    names = dict.fromkeys((experiment.baseline, *(systems or experiment.systems)))
    kept = {name: experiment.systems[name] for name in names}
    is_one = dataset is not None and experiment.dataset is None
    datasets = (dataset,) if is_one else experiment.datasets
    return experiment.model_copy(update={"systems": kept, "datasets": datasets})


def prepare_datasets(
    experiment: Experiment,
    source: Source,
    *,
    folders: Collection[Path],
    progress: Progress = ignore_progress,
) -> Iterator[EvaluationSet]:
    """The datasets of an experiment, one after the other, each with the lists that it uses.

    Args:
        experiment: What is compared.
        source: Where it was read from.
        folders: Where named datasets live.
        progress: Called as the work goes on.

    Raises:
        FusionBenchError: The experiment or its data breaks a rule.
    """
    paths = [path for _, path in find_datasets(experiment, source, folders)]
    for spec in read_distinct_specs(paths):
        roles = {name: frozenset(run.roles) for name, run in spec.runs.items()}
        experiment.check_datasets(roles, spec.rerank, source)
    for path in paths:
        loaded = load_lists(path, experiment.systems.values(), progress)
        progress(f"{loaded.name}: aligning", 0, 1)
        yield prepare_dataset(experiment, source, loaded)
