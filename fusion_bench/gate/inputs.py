"""What a gate runs on: experiment, systems, loaded collections; what speaks against them."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from fusion_bench.checks.judges import find_dataset_warnings, find_judge_refusals
from fusion_bench.checks.lint import lint_experiment, read_dataset_facts
from fusion_bench.checks.records import DataWarning, LintFinding, Obstacle
from fusion_bench.checks.unjudged import find_system_bounds, measure_unjudged
from fusion_bench.config.models import parse_model
from fusion_bench.config.options import ObstacleKind
from fusion_bench.config.yaml_files import Source
from fusion_bench.data.ordering import NOISE
from fusion_bench.data.records import COMPARED_FIELDS, check_field
from fusion_bench.errors import ConfigError
from fusion_bench.evaluation.prepared_dataset import EvaluationSet, load_lists, prepare_dataset
from fusion_bench.experiment.experiment import Experiment, find_datasets
from fusion_bench.experiment.settings import (
    ANSWERED,
    AUTO,
    GatePolicy,
    locate_check,
    split_slice,
)
from fusion_bench.experiment.system import System
from fusion_bench.gate.baseline import (
    Baseline,
    CollectionBaseline,
    ListDescription,
    PolicyChange,
    StoredUnjudged,
)
from fusion_bench.gate.checks import list_tolerances
from fusion_bench.gate.comparability import compare_policies
from fusion_bench.io.dataset import Dataset
from fusion_bench.io.dataset_cache import Cache, open_cache
from fusion_bench.io.dataset_config import ListSpec, read_spec
from fusion_bench.io.fingerprints import query_digests
from fusion_bench.io.held_out import HeldOut
from fusion_bench.io.looks import LEDGER_NAME, read_looks
from fusion_bench.measures import parse_measure
from fusion_bench.measures._base import is_bounded
from fusion_bench.ranking.plain_systems import fit_repeats
from fusion_bench.ranking.query_signals import answered_queries
from fusion_bench.ranking.system_scores import evaluate_systems
from fusion_bench.stats.intervals import exact_mean
from fusion_bench.stats.repeat_variance import mean_of_repeats
from fusion_bench.util.files import is_untracked, name_experiment
from fusion_bench.util.formatting import Progress, ignore_progress, pluralize


def _merge_repeats(dataset: Dataset) -> dict[str, str]:
    """SHA-256 of each loaded part; of a list with several repeats over those of its repeats."""
    digests = dataset.digests()
    for part, count in sorted(dataset.repeat_counts.items()):
        later = [f"{part} trial {n}" for n in range(2, count + 1)]
        each = [digests[part], *(digests.pop(name) for name in later)]
        digests[part] = hashlib.sha256("\n".join(each).encode()).hexdigest()
    return digests


@dataclass(frozen=True)
class GateInputs:
    """An experiment with a ``gate``, and where its data is.

    Attributes:
        experiment: The experiment.
        source: Where it was read from.
        folders: Where named datasets live.
        progress: Called with the stage, the steps done and all steps.
        allowed: Obstacles that stop no check.
    """

    experiment: Experiment
    source: Source
    folders: Collection[Path]
    progress: Progress = ignore_progress
    allowed: Collection[ObstacleKind] = ()

    @property
    def policy(self) -> GatePolicy:
        """The experiment's policy.

        Raises:
            ConfigError: It has none.
        """
        if self.experiment.gate is None:
            raise ConfigError(
                f"{self.source.path}: no 'gate' key: add one, for example "
                "gate: {system: NAME, checks: {nDCG@10: {max_drop: auto}}}"
            )
        return self.experiment.gate

    @property
    def measures(self) -> tuple[str, ...]:
        """Names of the measures: those of the policy, or the experiment's first if it has none."""
        return self.policy.measures or self.experiment.measures[:1]

    @property
    def candidate(self) -> System:
        """The gated system.

        Raises:
            ConfigError: The experiment has several and does not say which.
        """
        if self.experiment.gated_system is None:
            raise ConfigError(
                f"{self.source.where(('gate',))}: several systems: name the gated one "
                f"as gate.system ({', '.join(self.experiment.systems)})"
            )
        return self.experiment.gated_system

    def find_policy_changes(self, baseline: Baseline) -> tuple[PolicyChange, ...]:
        """What differs from the policy that a baseline was accepted under."""
        identity = {
            "experiment": name_experiment(self.source.path),
            "system": self.candidate.name,
            "seed": self.experiment.seed,
        }
        changes = [
            PolicyChange(path=key, before=getattr(baseline, key), after=value, effect="other")
            for key, value in identity.items()
            if getattr(baseline, key) != value
        ]
        return (*changes, *compare_policies(parse_model(GatePolicy, baseline.policy), self.policy))

    def load_collections(
        self, *others: System, committed: Baseline | None = None
    ) -> list[EvaluationSet]:
        """Load every dataset with the lists that the candidate and ``others`` use.

        Only the candidate's lists must exist; a missing list of another system is left out.

        Args:
            others: Further systems.
            committed: The baseline whose groups are taken; None = those found now.

        Returns:
            The datasets with one measure for each of the policy, in its order.

        Raises:
            FusionBenchError: The experiment or its data breaks a rule.
        """
        systems = (self.candidate, *others)
        paths = find_datasets(self.experiment, self.source, self.folders)
        policy, tasks = self.policy, []
        slices = {name for measure in policy.tolerances for name in policy.slices_of(measure)}
        fields = {split_slice(name)[0] for name in slices if name}
        for _, path in paths:
            spec, _ = read_spec(path)
            stored = committed and committed.by_collection.get(spec.name)
            groups = stored.groups if stored else None if committed is None else {}
            gated = {self.candidate.name: self.candidate}
            experiment = self.experiment.model_copy(update={"systems": gated})
            experiment.check_datasets(spec.run_roles, spec.rerank, self.source)
            cache = open_own_cache(path) or False
            dataset = load_lists(path, systems, self.progress, cache=cache, groups=groups)
            for field in sorted(fields.difference(COMPARED_FIELDS)):
                where = f"{self.source.where(('gate', 'slices'))}: {dataset.name}"
                check_field(field, dataset.queries.values(), where)
            fitting = [system for system in systems if set(system.base_runs) <= set(dataset.runs)]
            changed = {"systems": dict(enumerate(fitting))}  # two may have one name
            task = prepare_dataset(self.experiment.model_copy(update=changed), self.source, dataset)
            measures = []
            for name in self.measures:
                where = self.source.where(locate_check(self.source, name))
                relevance = spec.binary_relevance
                measures.append(parse_measure(name, binary_relevance=relevance, where=where))
            tasks.append(replace(task, measures=tuple(measures)))
        return tasks


def open_own_cache(dataset: Path) -> Cache | None:
    """The cache of a dataset, if git says that it did not come with the repository; else None.

    What is stored there stands for the lists, whoever wrote it.
    """
    spec, _ = read_spec(dataset)
    cache = open_cache(dataset.parent, spec.list_paths(dataset.parent))
    return cache if cache is not None and is_untracked(cache.folder) else None


def lint_candidate(inputs: GateInputs) -> tuple[LintFinding, ...]:
    """What lint finds in the candidate."""
    experiment, source = inputs.experiment, inputs.source
    facts = read_dataset_facts(experiment, source, inputs.folders)
    return lint_experiment(experiment, source, facts, systems=[inputs.candidate.name])


def list_held_out(collections: Iterable[EvaluationSet]) -> dict[str, HeldOut]:
    """Collection → the queries that open campaigns hold out of it."""
    return {task.dataset.name: task.dataset.held_out for task in collections}


def describe_collection(task: EvaluationSet, system: System | None = None) -> CollectionBaseline:
    """What a baseline stores of a collection.

    Args:
        task: The collection.
        system: With a system, only the lists that it reads, and its values; otherwise no values.
    """
    dataset = task.dataset
    spec, digests, unjudged = dataset.spec, _merge_repeats(dataset), None
    values: dict[str, Any] = {}
    definitions = {m.name: m.model_dump(mode="json") for m in task.measures}
    if _checks_answered(task):
        definitions[ANSWERED] = {}
    if system is not None:
        used = system.list_keys
        digests = {part: digests[part] for part in digests if "/" not in part or part in used}
        unjudged = _store_unjudged(task, system)
        values = _store_values(task, system)
    specs: dict[str, ListSpec] = {f"runs/{name}": run for name, run in spec.runs.items()}
    specs |= {f"rerank/{name}": run for name, run in spec.rerank.items()}
    description = CollectionBaseline(
        collection=dataset.name,
        version=spec.version,
        digests=digests,
        lists={
            part: ListDescription(
                roles=tuple(sorted(specs[part].roles)),
                read_options=specs[part].read_options.settings,
                score_space=getattr(specs[part], "score_space", None),
                trials=dataset.repeat_counts.get(part, 1),
            )
            for part in digests
            if part in specs
        },
        judgments=spec.judgments,
        binary_relevance=spec.binary_relevance,
        split=task.split,
        query_type=task.experiment.query_type,
        where=dict(task.experiment.where),
        queries=task.runs.queries,
        definitions=definitions,
        values={},
        unjudged=unjudged,
        groups=dataset.found_groups,
    )
    # NaN is for the checks to refuse.
    return description.model_copy(update=values)


def find_path(task: EvaluationSet, inputs: GateInputs) -> Path:
    """The ``dataset.yaml`` of a collection."""
    paths = dict(find_datasets(inputs.experiment, inputs.source, inputs.folders)).values()
    return next(path for path in paths if read_spec(path)[0].name == task.dataset.name)


def find_stopping_obstacles(task: EvaluationSet, inputs: GateInputs) -> list[Obstacle]:
    """What is wrong with the ids or the scores of the candidate's lists, and is not allowed."""
    used = inputs.candidate.list_keys
    stopping = [each for each in task.obstacles if each.kind not in inputs.allowed]
    return [each for each in stopping if used.intersection(each.lists)]


def find_unusable_lists(task: EvaluationSet, inputs: GateInputs) -> Iterator[str]:
    """Why nothing can be gated: a machine judge proves nothing, or a list is unusable.

    The judge is circular, unmeasured, or not shown to agree with people. A fallback scored the
    list, or it has no result.
    """
    candidate, name = inputs.candidate, task.dataset.name
    yield from find_judge_refusals(task.dataset, task.experiment.systems.values())
    for reranker in candidate.reranker_names if inputs.policy.degraded == "refuse" else ():
        reason = task.dataset.degradation(reranker)
        if reason is not None:
            yield f"{name}: {reason}"
    repeats = task.runs.repeats[: task.runs.count_repeats(candidate.list_keys)]
    for number, runs in enumerate(repeats, 1):
        of_repeat = f" in trial {number}" if len(repeats) > 1 else ""
        empty: list[str] = []
        view = candidate.active_runs(runs) if candidate.weights_by_type is None else runs
        for run in view.sources:
            s = runs.sources.index(run)
            if run in candidate.runs and not ((runs.ranks[s] > 0).any() or runs.off[s].all()):
                empty.append(f"run {run!r} has no result")
        empty += [
            f"reranker {reranker!r} has no result"
            for reranker in sorted(candidate.reranker_names)
            if np.isnan(runs.rerank[runs.rerankers.index(reranker)]).all()
        ]
        for text in empty:
            yield f"{name}: {text} for any evaluated query{of_repeat}"


def find_update_warnings(inputs: GateInputs) -> Iterator[str]:
    """What speaks against the judge whose grades become the baseline.

    Args:
        inputs: The experiment; only datasets that a machine judged are read.

    Yields:
        Each text begins with its dataset where there are several.
    """
    paths = [*find_datasets(inputs.experiment, inputs.source, inputs.folders)]
    for _, path in paths:
        qrels = read_spec(path)[0].qrels
        if qrels is not None and qrels.kind == "machine":
            cache = open_own_cache(path) or False
            dataset = load_lists(path, (inputs.candidate,), inputs.progress, cache=cache)
            start = f"{dataset.name}: " if len(paths) > 1 else ""
            for warning in find_dataset_warnings(dataset, [inputs.candidate]):
                yield start + warning.text


def warn_of_looks(task: EvaluationSet, inputs: GateInputs) -> Iterator[DataWarning]:
    """Warn where ``tune`` looked at the queries of a collection.

    Raises:
        DataError: The ledger of looks is malformed.
    """
    folder = find_path(task, inputs).parent
    tune = inputs.experiment.tune
    stated = None if tune is None else tune.looks.file
    path = folder / LEDGER_NAME if stated is None else inputs.source.path.parent / stated
    if not path.is_file():
        return
    digests = set(query_digests(task.runs.queries))
    seen = [digests.intersection(look.queries) for look in read_looks(path)]
    queries = set().union(*seen)
    if queries:
        looks = pluralize(sum(map(bool, seen)), "look")
        yield DataWarning(
            key="tuned queries",
            text=f"tune had {looks} at {len(queries):,} of these queries ({path}): a candidate "
            "that was chosen on them passes more often than stated: tune on dev, gate on test.",
            evidence={"looks": sum(map(bool, seen)), "queries": len(queries)},
        )


def find_unreachable_limits(
    inputs: GateInputs, baseline: Baseline, collections: Iterable[EvaluationSet]
) -> Iterator[str]:
    """Why a check on all queries of a collection could not fail; nothing where each can.

    A baseline whose mean is 0 has nothing to lose, and is no reason.

    Args:
        inputs: The experiment with its policy.
        baseline: Its values, and what ``max_drop: auto`` stands for.
        collections: The loaded datasets.
    """
    for task in collections:
        record = baseline.by_collection[task.dataset.name]
        values = record.value_arrays(task.runs.queries)
        sealed = baseline.drops_of(record.collection)
        for key, tolerance, name, counted in list_tolerances(inputs.policy, task):
            if not is_bounded(name) or name not in values or not counted.any():
                continue
            mean = exact_mean(values[name][counted])
            limits = tolerance.stated_limits
            if tolerance.max_drop == AUTO:
                limits["max_drop"] = sealed.get((None, name), 0.0)
            for field, limit in limits.items():
                if 0 < mean <= limit + NOISE:
                    where = inputs.source.where((*locate_check(inputs.source, key), field))
                    is_auto = field not in tolerance.stated_limits
                    remedy = "state a smaller one, or gate more queries" if is_auto else "give less"
                    yield (
                        f"{where}: {'auto, which is ' * is_auto}{limit:g}, checks nothing: "
                        f"{name} of {record.collection} is {mean:.4f} in the baseline, and "
                        f"cannot fall by more: {remedy}"
                    )


def _store_values(task: EvaluationSet, system: System) -> dict[str, dict[str, tuple[Any, ...]]]:
    """The values that a baseline stores: their means over repeats, and those of each repeat."""
    [scores] = evaluate_systems([system], task.runs, task.measures, training=task.training)
    names, arrays = [measure.name for measure in task.measures], scores.repeats
    if _checks_answered(task):
        names.append(ANSWERED)
        bits = [answered_queries(*each) for each in fit_repeats(system, task.runs, task.training)]
        arrays = np.concatenate((arrays, np.array(bits, dtype=np.float64)[:, None]), axis=1)
    repeats = np.swapaxes(arrays, 0, 1)
    means = mean_of_repeats(arrays).tolist()
    several = zip(names, repeats.tolist(), strict=True) if len(arrays) > 1 else ()
    return {
        "values": dict(zip(names, map(tuple, means), strict=True)),
        "trials": {n: tuple(map(tuple, rows)) for n, rows in several},
    }


def _checks_answered(task: EvaluationSet) -> bool:
    """Whether the gate checks which answerable queries are answered."""
    return task.experiment.gate is not None and task.experiment.gate.answered is not None


def _store_unjudged(task: EvaluationSet, system: System) -> StoredUnjudged | None:
    """What a baseline stores of a system, as means over repeats; None with complete judgments."""
    if task.judgment_kind == "complete":
        return None
    names = [measure.name for measure in task.measures]
    evidence = measure_unjudged(system, task.runs, task.measures, training=task.training)
    values = dict(zip(names, evidence, strict=True))
    known = values if task.has_irrelevant_judgments else {}
    stored = StoredUnjudged(
        share=tuple(values[names[0]].share.tolist()),
        judged_only={name: tuple(each.judged_only.tolist()) for name, each in known.items()},
        filled={
            n: tuple(None if np.isnan(v) else v for v in e.filled.tolist())
            for n, e in known.items()
            if e.filled is not None
        },
    )
    bounds = find_system_bounds(system, task.runs, task.measures, training=task.training)
    pairs = zip(names, bounds, strict=True)
    return stored.with_bounds({name: each for name, each in pairs if each is not None})
