"""A system of an experiment file, with what the live pipeline needs of its dataset."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from fusion_bench.config.files.yaml_source import Source
from fusion_bench.data.aligned_runs import Ties
from fusion_bench.data.records import ScoreSpace
from fusion_bench.errors import ConfigError, UnknownNameError
from fusion_bench.evaluation.ranking.fitting import fit_system, needs_fitting
from fusion_bench.experiment.crag_settings import CragRule
from fusion_bench.experiment.experiment import Experiment, read_experiment
from fusion_bench.experiment.system import System
from fusion_bench.io.dataset import load_dataset
from fusion_bench.io.dataset_config import DatasetSpec, read_spec
from fusion_bench.io.dataset_search import find_dataset, find_folders
from fusion_bench.live.query_lists import ListRules


@dataclass(frozen=True)
class TunedSystem:
    """A system that can rank live queries.

    Attributes:
        system: The system; what is trained in it is fitted.
        rules: How lists are read.
        spaces: Score space of each rerank list of the dataset.
        crag: The experiment's thresholds of CRAG's verdict; None = it has none.
    """

    system: System
    rules: ListRules
    spaces: Mapping[str, ScoreSpace]
    crag: CragRule | None = None


def load_tuned_system(
    path: Path,
    name: str | None,
    *,
    dataset: str | None = None,
    roles: Mapping[str, frozenset[str]] | None = None,
    folders: Collection[Path] | None = None,
    overrides: Sequence[str] = (),
) -> TunedSystem:
    """Read a system of an experiment, and its dataset's ``dataset.yaml``.

    Trained fusions and policies are fitted to all judged queries, which reads the whole dataset.

    Args:
        path: The experiment.
        name: The system; None = the gated one, or the only one.
        dataset: As the experiment names it; None = its only one.
        roles: Roles of each source; then the dataset need not be there.
        folders: Where named datasets live; None = beside the experiment, and ``datasets`` here and
            above.
        overrides: ``PATH=VALUE`` each: values that replace the file's.

    Raises:
        FusionBenchError: A file breaks a rule, or a name is unknown.
    """
    experiment, source = read_experiment(path, overrides=overrides)
    system = _select_system(experiment, name, path)
    if roles is not None:
        if needs_fitting(system):
            raise ConfigError(
                f"system {system.name!r} is trained, which needs the dataset: leave out 'roles'"
            )
        return TunedSystem(system, ListRules(roles, {}, experiment.ties), {}, experiment.crag)
    file = _find_file(experiment, source, dataset, folders)
    spec, _ = read_spec(file)
    rules = make_rules(spec, system.base_runs, experiment.ties)
    spaces = {run: facts.score_space for run, facts in spec.rerank.items()}
    alone = experiment.model_copy(update={"systems": {system.name: system}})
    roles_of_all = {run: frozenset(facts.roles) for run, facts in spec.runs.items()}
    alone.check_datasets(roles_of_all, spec.rerank, source)
    if needs_fitting(system):
        loaded = load_dataset(file, runs=system.base_runs, rerankers=system.reranker_names)
        aligned = loaded.aligned(system.base_runs, ties=experiment.ties)
        system = fit_system(system, aligned, spaces)
    return TunedSystem(system, rules, spaces, experiment.crag)


def make_rules(spec: DatasetSpec, names: Collection[str], ties: Ties) -> ListRules:
    """How a dataset's lists are read.

    Args:
        spec: What its ``dataset.yaml`` says.
        names: The runs that are read.
        ties: The tie rule.
    """
    runs = {name: spec.runs[name] for name in names}
    return ListRules(
        roles={name: frozenset(run.roles) for name, run in runs.items()},
        options={name: facts.read_options for name, facts in {**runs, **spec.rerank}.items()},
        ties=ties,
        conditions={name: run.when for name, run in runs.items() if run.when is not None},
    )


def _select_system(experiment: Experiment, name: str | None, path: Path) -> System:
    if name is None and len(experiment.systems) == 1:
        (name,) = experiment.systems
    if name is None and experiment.gate is not None and experiment.gated_system is not None:
        name = experiment.gated_system.name
    if name is None:
        names = ", ".join(map(repr, experiment.systems))
        raise ConfigError(f"{path}: several systems: choose one with system=…: {names}")
    if name not in experiment.systems:
        raise UnknownNameError("system", name, experiment.systems, where=str(path))
    return experiment.systems[name]


def _find_file(
    experiment: Experiment,
    source: Source,
    dataset: str | None,
    folders: Collection[Path] | None,
) -> Path:
    names = experiment.dataset_names
    if dataset is None and len(names) > 1:
        raise ConfigError(
            f"{source.path}: several datasets: choose one with dataset=…: {', '.join(names)}"
        )
    if dataset is not None and dataset not in names:
        raise UnknownNameError("dataset", dataset, names, where=str(source.path))
    return find_dataset(
        dataset or names[0],
        find_folders(folders, source.path),
        where=str(source.path),
        base=source.path.parent,
    )
