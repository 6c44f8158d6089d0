"""The systems whose documents are judged: those of an experiment, or the lists of a dataset."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from fusion_bench.config.files.yaml_source import Source, read_yaml
from fusion_bench.config.models import parse_model
from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.errors import ConfigError, UnknownNameError
from fusion_bench.evaluation.ranking.final_lists import align_all_queries
from fusion_bench.evaluation.ranking.fitting import fit_system, needs_fitting
from fusion_bench.evaluation.run_experiment import find_datasets
from fusion_bench.experiment.experiment import Experiment, read_experiment
from fusion_bench.experiment.system import System
from fusion_bench.io.dataset import Dataset, load_dataset
from fusion_bench.io.dataset_config import read_spec
from fusion_bench.io.dataset_search import find_dataset


@dataclass(frozen=True, eq=False)
class JudgedSystems:
    """Systems on one dataset.

    Attributes:
        path: The ``dataset.yaml``.
        dataset: With the lists that the systems use.
        experiment: These systems on this dataset alone.
        source: Where it was read from.
    """

    path: Path
    dataset: Dataset
    experiment: Experiment
    source: Source

    @property
    def systems(self) -> Mapping[str, System]:
        """The systems by name."""
        return self.experiment.systems


def is_experiment(target: Path) -> bool:
    """Whether a file is an experiment; else it names a dataset."""
    if target.suffix not in {".yaml", ".yml"} or not target.is_file():
        return False
    data = read_yaml(target).data
    return isinstance(data, Mapping) and "systems" in data


def read_judged_systems(
    target: Path,
    *,
    folders: Collection[Path],
    systems: Sequence[str] = (),
    dataset: str | None = None,
    overrides: Sequence[str] = (),
) -> JudgedSystems:
    """Read the systems of an experiment, or each list of a dataset as a system.

    Args:
        target: The experiment, or a dataset: its name, its folder or its ``dataset.yaml``.
        folders: Where named datasets live.
        systems: Names of the systems; empty = all. The baseline of an experiment is added.
        dataset: One of the experiment's datasets, as the experiment or its ``dataset.yaml`` names
            it; needed where there are several.
        overrides: Values of ``--set``.

    Raises:
        FusionBenchError: A file breaks a rule, or a name is unknown.
    """
    if is_experiment(target):
        experiment, source = read_experiment(target, overrides=overrides)
        paths = dict(find_datasets(experiment, source, folders))
        path = paths[_choose_dataset(paths, dataset)]
    else:
        for option, value in {"--dataset": dataset, "--set": [*overrides]}.items():
            if value:
                raise ConfigError(f"{option}: {target} is a dataset, and only experiments take it")
        path = find_dataset(str(target), folders)
        experiment, source = _make_experiment(path)
    chosen = _choose_systems(experiment, systems)
    used = dict.fromkeys(name for system in chosen.values() for name in system.base_runs)
    rerankers = {name for system in chosen.values() for name in system.reranker_names}
    loaded = load_dataset(path, runs=[*used], rerankers=rerankers, every_query=None)
    kept = experiment.model_copy(update={"systems": chosen, "dataset": str(path), "datasets": ()})
    roles = {name: frozenset(run.roles) for name, run in loaded.spec.runs.items()}
    kept.check_datasets(roles, loaded.spec.rerank, source)
    return JudgedSystems(path, loaded, kept, source)


def align_for_judging(
    judged: JudgedSystems, dataset: Dataset
) -> tuple[AlignedRuns, dict[str, System]]:
    """Every query that a list answers, judged or not, and the systems, fitted.

    No document is judged in these runs.

    Args:
        judged: The systems.
        dataset: Their dataset, or one of its later trials.
    """
    ties = judged.experiment.ties
    runs = align_all_queries(
        list(dataset.runs.values()),
        rerankers=list(dataset.rerankers.values()),
        queries=dataset.queries,
        ties=ties,
    )
    systems = dict(judged.systems)
    if any(map(needs_fitting, systems.values())):
        known = dataset.aligned(list(dataset.runs), ties=ties)
        systems = {n: fit_system(each, known, dataset.spaces) for n, each in systems.items()}
    return runs, systems


def _make_experiment(path: Path) -> tuple[Experiment, Source]:
    """Each list of a dataset alone, the first one as the baseline."""
    spec, _ = read_spec(path)
    names = list(spec.runs)
    systems = {name: {"runs": [name]} for name in names}
    data = {"dataset": str(path), "baseline": names[0], "systems": systems}
    source = Source(path, data)
    return parse_model(Experiment, data, source.where), source


def _choose_dataset(paths: Mapping[str, Path], dataset: str | None) -> str:
    """The dataset by the experiment's name of it, or by its own, which reports print."""
    names = [*paths]
    if dataset is None and len(names) > 1:
        raise ConfigError(
            f"the experiment has several datasets: choose one with --dataset: {', '.join(names)}"
        )
    if dataset is None or dataset in paths:
        return dataset or names[0]
    for name, path in paths.items():
        if read_spec(path)[0].name == dataset:
            return name
    raise UnknownNameError("dataset", dataset, names, where="--dataset")


def _choose_systems(experiment: Experiment, names: Sequence[str]) -> dict[str, System]:
    for name in names:
        if name not in experiment.systems:
            raise UnknownNameError("system", name, experiment.systems, where="--system")
    kept = dict.fromkeys((experiment.baseline, *names)) if names else experiment.systems
    return {name: experiment.systems[name] for name in kept}
