"""The collections that a gate runs on, and the system and policy it checks."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TypeVar

import numpy as np

from fusion_bench.config.models import Source
from fusion_bench.data.ordering import FloatArray
from fusion_bench.errors import ConfigError
from fusion_bench.evaluation.prepared_dataset import EvaluationSet, prepare_dataset
from fusion_bench.evaluation.scores import evaluate_systems
from fusion_bench.experiment.experiment import Experiment
from fusion_bench.experiment.gate_settings import GatePolicy
from fusion_bench.experiment.system import System
from fusion_bench.gate import baseline as model
from fusion_bench.io import Dataset, find_dataset, load_dataset
from fusion_bench.io.dataset_config import RerankSpec, RunSpec, read_spec
from fusion_bench.measures import Measure, parse_measure

Progress = Callable[[str, int, int], None]
T = TypeVar("T")


def ignore_progress(stage: str, done: int, total: int) -> None:
    """Report no progress."""


@dataclass(frozen=True, eq=False)
class LoadedCollection:
    """One collection of the gate.

    Attributes:
        task: The dataset, aligned and restricted to the evaluated queries.
        measures: The dataset's measures by the name that the policy uses.
    """

    task: EvaluationSet
    measures: Mapping[str, Measure]

    @property
    def name(self) -> str:
        """The dataset's name."""
        return self.task.dataset.name


def load_collections(
    experiment: Experiment,
    source: Source,
    systems: Sequence[System],
    *,
    folders: Collection[Path],
    progress: Progress,
) -> list[LoadedCollection]:
    """Load every dataset of an experiment with the lists that ``systems`` use.

    Args:
        experiment: With a ``gate``.
        source: Where it was read from.
        systems: The candidate first, then the others. Only the candidate's lists must exist; a
            missing list of another system is left out.
        folders: Where named datasets live.
        progress: Called with the stage, the steps done and all steps.

    Raises:
        FusionBenchError: The experiment or its data breaks a rule.
    """
    collections = []
    for i, name in enumerate(experiment.dataset_names):
        location = ("dataset",) if experiment.dataset is not None else ("datasets", i)
        path = find_dataset(name, folders, where=source.where(location))
        progress(f"reading {path.parent.name}", i, len(experiment.dataset_names))
        collections.append(_load_collection(experiment, source, systems, path))
    return collections


def _load_collection(
    experiment: Experiment, source: Source, systems: Sequence[System], path: Path
) -> LoadedCollection:
    spec, _ = read_spec(path)
    roles = {name: frozenset(run.roles) for name, run in spec.runs.items()}
    candidate = experiment.model_copy(update={"systems": {systems[0].name: systems[0]}})
    candidate.check_datasets(roles, spec.rerank, source)
    dataset = load_dataset(
        path,
        runs={name for system in systems for name in system.runs},
        rerankers={name for system in systems for name in system.reranker_names},
    )
    fitting = [system for system in systems if set(system.runs) <= set(dataset.runs)]
    changed = {"systems": dict(enumerate(fitting))}  # two may have one name
    task = prepare_dataset(experiment.model_copy(update=changed), source, dataset)
    measures = _parse_measures(experiment, source, spec.binary_relevance)
    return LoadedCollection(
        replace(task, measures=tuple(dict.fromkeys(measures.values()))), measures
    )


def _parse_measures(
    experiment: Experiment, source: Source, binary_relevance: int
) -> dict[str, Measure]:
    policy = experiment.gate
    names = () if policy is None else policy.measures
    measures = {}
    for name in names:
        locations = (("gate", name), ("gate", "checks", name))
        location = next((p for p in locations if p in source.lines), ("gate",))
        where = source.where(location)
        measures[name] = parse_measure(name, binary_relevance=binary_relevance, where=where)
    return measures


def compute_values(loaded: LoadedCollection, system: System) -> FloatArray:
    """(M, Q): the system's values."""
    task = loaded.task
    [scores] = evaluate_systems(
        [system],
        task.runs,
        task.measures,
        spaces=task.dataset.spaces,
        qrels=task.dataset.qrels,
    )
    return scores.values


def describe_collection(loaded: LoadedCollection) -> model.CollectionBaseline:
    """What identifies the loaded data: digests, options, queries, measures; no values."""
    task, spec = loaded.task, loaded.task.dataset.spec
    return model.CollectionBaseline(
        collection=loaded.name,
        version=spec.version,
        digests=task.dataset.digests(),
        lists=_describe_lists(task.dataset),
        judgments=spec.judgments,
        binary_relevance=spec.binary_relevance,
        split=task.split,
        query_type=task.experiment.query_type,
        queries=task.runs.queries,
        definitions={m.name: m.model_dump(mode="json") for m in task.measures},
        values={},
    )


def evaluate_collection(loaded: LoadedCollection, system: System) -> model.CollectionBaseline:
    """What a baseline stores of a system on a collection: the lists it reads, and every value."""
    description = describe_collection(loaded)
    values = compute_values(loaded, system)
    return description.model_copy(
        update={
            "digests": _select_parts(description.digests, system),
            "lists": _select_parts(description.lists, system),
            "values": {
                m.name: tuple(values[i].tolist()) for i, m in enumerate(loaded.task.measures)
            },
        }
    )


def _select_parts(parts: Mapping[str, T], system: System) -> dict[str, T]:
    """The parts that a system reads: its lists, and all that is no list."""
    used = {f"runs/{name}" for name in system.runs}
    used |= {f"rerank/{name}" for name in system.reranker_names}
    return {key: value for key, value in parts.items() if "/" not in key or key in used}


def _describe_lists(dataset: Dataset) -> dict[str, model.ListDescription]:
    def describe(spec: RunSpec) -> model.ListDescription:
        return model.ListDescription(
            roles=tuple(sorted(spec.roles)),
            read_options=asdict(spec.read_options),
            score_space=spec.score_space if isinstance(spec, RerankSpec) else None,
        )

    spec = dataset.spec
    runs = {f"runs/{name}": describe(spec.runs[name]) for name in dataset.runs}
    return runs | {f"rerank/{name}": describe(spec.rerank[name]) for name in dataset.rerankers}


def lists_without_results(loaded: LoadedCollection, system: System) -> list[str]:
    """Lists of a system that have no document of any evaluated query."""
    runs = loaded.task.runs
    view = system.active_runs(runs) if system.weights_by_type is None else runs
    names = [
        f"run {name!r}"
        for name in view.sources
        if name in system.runs and not (runs.ranks[runs.sources.index(name)] > 0).any()
    ]
    names += [
        f"reranker {name!r}"
        for name in sorted(system.reranker_names)
        if np.isnan(runs.rerank[runs.rerankers.index(name)]).all()
    ]
    return names


def require_policy(experiment: Experiment, source: Source) -> GatePolicy:
    """The experiment's policy.

    Raises:
        ConfigError: It has none.
    """
    if experiment.gate is None:
        raise ConfigError(
            f"{source.path}: no 'gate' key: add one, for example "
            "gate: {system: NAME, checks: {nDCG@10: {max_drop: 0.005}}}"
        )
    return experiment.gate


def select_candidate(experiment: Experiment, source: Source) -> System:
    """The gated system.

    Raises:
        ConfigError: The experiment has several and does not say which.
    """
    system = experiment.gated_system
    if system is None:
        raise ConfigError(
            f"{source.where(('gate',))}: several systems: name the gated one "
            f"as gate.system ({', '.join(experiment.systems)})"
        )
    return system


def unusable_lists(
    loaded: LoadedCollection, candidate: System, policy: GatePolicy
) -> Iterator[str]:
    """Why a list of the candidate cannot be gated: a fallback scored it, or it has no result."""
    for name in candidate.reranker_names if policy.degraded == "refuse" else ():
        reason = loaded.task.dataset.degradation(name)
        if reason is not None:
            yield f"{loaded.name}: {reason}"
    for name in lists_without_results(loaded, candidate):
        yield f"{loaded.name}: {name} has no result for any evaluated query"
