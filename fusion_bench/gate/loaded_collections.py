"""The collections that a gate runs on, and the system and policy it checks."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np

from fusion_bench.config.models import Source
from fusion_bench.errors import ConfigError
from fusion_bench.evaluation.prepared_dataset import EvaluationSet, prepare_dataset
from fusion_bench.evaluation.scores import evaluate_systems
from fusion_bench.experiment.experiment import Experiment
from fusion_bench.experiment.gate_settings import GatePolicy
from fusion_bench.experiment.system import System
from fusion_bench.gate.baseline import CollectionBaseline, ListDescription
from fusion_bench.io import find_dataset, load_dataset
from fusion_bench.io.dataset_config import RunSpec, read_spec
from fusion_bench.measures import Measure, parse_measure

Progress = Callable[[str, int, int], None]


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
    measures = {}
    for name in () if experiment.gate is None else experiment.gate.measures:
        locations = (("gate", name), ("gate", "checks", name))
        location = next((p for p in locations if p in source.lines), ("gate",))
        measures[name] = parse_measure(
            name, binary_relevance=spec.binary_relevance, where=source.where(location)
        )
    return LoadedCollection(
        replace(task, measures=tuple(dict.fromkeys(measures.values()))), measures
    )


def describe_collection(
    loaded: LoadedCollection, system: System | None = None
) -> CollectionBaseline:
    """What a baseline stores of a collection.

    Args:
        loaded: The collection.
        system: With a system, only the lists that it reads, and its values; otherwise no values.
    """
    task, dataset = loaded.task, loaded.task.dataset
    spec, digests = dataset.spec, dataset.digests()
    if system is not None:
        used = {f"runs/{name}" for name in system.runs}
        used |= {f"rerank/{name}" for name in system.reranker_names}
        digests = {
            part: hash_ for part, hash_ in digests.items() if "/" not in part or part in used
        }
    specs: dict[str, RunSpec] = {f"runs/{name}": run for name, run in spec.runs.items()}
    specs |= {f"rerank/{name}": run for name, run in spec.rerank.items()}
    return CollectionBaseline(
        collection=loaded.name,
        version=spec.version,
        digests=digests,
        lists={
            part: ListDescription(
                roles=tuple(sorted(specs[part].roles)),
                read_options=asdict(specs[part].read_options),
                score_space=getattr(specs[part], "score_space", None),
            )
            for part in digests
            if part in specs
        },
        judgments=spec.judgments,
        binary_relevance=spec.binary_relevance,
        split=task.split,
        query_type=task.experiment.query_type,
        queries=task.runs.queries,
        definitions={m.name: m.model_dump(mode="json") for m in task.measures},
        values={},
    ).model_copy(update={"values": {} if system is None else _compute_values(task, system)})


def _compute_values(task: EvaluationSet, system: System) -> dict[str, tuple[float, ...]]:
    """The system's values by measure."""
    dataset = task.dataset
    [scores] = evaluate_systems(
        [system], task.runs, task.measures, spaces=dataset.spaces, qrels=dataset.qrels
    )
    names = [measure.name for measure in task.measures]
    return dict(zip(names, map(tuple, scores.values.tolist()), strict=True))


def select_gated_system(experiment: Experiment, source: Source) -> tuple[GatePolicy, System]:
    """The experiment's policy, and the system that it gates.

    Raises:
        ConfigError: It has no policy, or several systems and does not say which.
    """
    if experiment.gate is None:
        raise ConfigError(
            f"{source.path}: no 'gate' key: add one, for example "
            "gate: {system: NAME, checks: {nDCG@10: {max_drop: 0.005}}}"
        )
    if experiment.gated_system is None:
        raise ConfigError(
            f"{source.where(('gate',))}: several systems: name the gated one "
            f"as gate.system ({', '.join(experiment.systems)})"
        )
    return experiment.gate, experiment.gated_system


def find_unusable_lists(
    loaded: LoadedCollection, candidate: System, policy: GatePolicy
) -> Iterator[str]:
    """Why a list of the candidate cannot be gated: a fallback scored it, or it has no result."""
    for name in candidate.reranker_names if policy.degraded == "refuse" else ():
        reason = loaded.task.dataset.degradation(name)
        if reason is not None:
            yield f"{loaded.name}: {reason}"
    runs = loaded.task.runs
    view = candidate.active_runs(runs) if candidate.weights_by_type is None else runs
    silent = [
        f"run {name!r}"
        for name in view.sources
        if name in candidate.runs and not (runs.ranks[runs.sources.index(name)] > 0).any()
    ]
    silent += [
        f"reranker {name!r}"
        for name in sorted(candidate.reranker_names)
        if np.isnan(runs.rerank[runs.rerankers.index(name)]).all()
    ]
    for name in silent:
        yield f"{loaded.name}: {name} has no result for any evaluated query"
