"""One dataset of an experiment: read, aligned, cut to the judged queries."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import numpy as np

from fusion_bench.checks.collection_warnings import find_warnings
from fusion_bench.checks.dataset_facts import describe_first_repeat, find_unjudged_queries
from fusion_bench.checks.judges import describe_judge
from fusion_bench.checks.lists import list_infos
from fusion_bench.checks.obstacles import find_obstacles, find_other_kinds
from fusion_bench.checks.query_warnings import count_synthetic, list_grades
from fusion_bench.checks.records import DataWarning, ListInfo, NearDuplicates, Obstacle
from fusion_bench.checks.unjudged import judgment_kind
from fusion_bench.config.query_types import PREDICTED_TYPE
from fusion_bench.config.yaml_files import Source
from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.ordering import IntArray
from fusion_bench.data.records import COMPARED_FIELDS, check_field
from fusion_bench.errors import ConfigError, UnknownNameError
from fusion_bench.experiment.experiment import Experiment
from fusion_bench.experiment.system import System, merge_rules
from fusion_bench.io.dataset import Dataset, load_dataset
from fusion_bench.io.dataset_cache import Cache
from fusion_bench.io.looks import record_shown
from fusion_bench.measures import Measure
from fusion_bench.ranking.collapse import add_system_parents
from fusion_bench.ranking.plain_systems import fit_system, needs_fitting
from fusion_bench.stats.unjudged import JudgmentKind
from fusion_bench.util.formatting import Progress, pluralize

#: The split that means every judged query.
ALL_QUERIES = "all"
#: Settings of an experiment that leave out no judged query, and break nothing down.
ALL_JUDGED: Final[Mapping[str, Any]] = {
    "split": ALL_QUERIES,
    "query_type": None,
    "where": {},
    "slices": (),
}
#: The split that is evaluated, and the one that choices are made on, where a dataset has them.
JUDGE_ON, TUNE_ON = "test", "dev"
#: Most values of a field by which results are broken down.
MAX_SLICES = 50


@dataclass(frozen=True, eq=False)
class EvaluationSet:
    """What is needed to compute one collection of a report.

    Attributes:
        experiment: What is compared.
        dataset: The dataset with the lists that the systems use.
        runs: Aligned, every repeat of them, only the queries that are evaluated.
        tuning: Aligned, only the queries that choices are made on; None = the evaluated ones.
        split: Which split is evaluated; None = all judged queries.
        measures: As the dataset resolves them, the primary one first.
        training: Aligned, the queries that trained fusions learn from: every judged one where some
            system is trained. A query is never scored by what was learned from it.
        samples_ties: Whether the ties inside lists are settled at random to see what they move.
    """

    experiment: Experiment
    dataset: Dataset
    runs: AlignedRuns
    tuning: AlignedRuns | None
    split: str | None
    measures: tuple[Measure, ...]
    training: AlignedRuns
    samples_ties: bool = True

    def repeat_lists(self, system: System) -> frozenset[str]:
        """The lists with several files that a system reads: ``runs/NAME`` and ``rerank/NAME``."""
        return self.dataset.repeat_lists & system.list_keys

    def fit_system(self, system: System, repeat: int = 0) -> System:
        """The system with its trained fusions fitted on one repeat, as every command fits them."""
        return fit_system(system, self.training.repeats[repeat])

    @property
    def shown_queries(self) -> tuple[str, ...]:
        """Ids of the queries whose values a report of this dataset shows."""
        return (*self.runs.queries, *(self.tuning.queries if self.tuning else ()))

    @property
    def groups(self) -> IntArray:
        """(Q,): codes of the groups."""
        return self.runs.group_codes

    @property
    def has_irrelevant_judgments(self) -> bool:
        """Whether a document of the evaluated queries is judged not relevant, or all are known."""
        return self.judgment_kind in {"pooled", "complete"}

    @cached_property
    def judgment_kind(self) -> JudgmentKind:
        """What the judgments of the evaluated queries say of unjudged documents."""
        return judgment_kind(self.dataset, self.runs.queries)

    @cached_property
    def list_infos(self) -> tuple[ListInfo, ...]:
        """What was noticed about each input list, over the evaluated queries."""
        return tuple(list_infos([*zip(self.dataset.repeats, self.runs.repeats, strict=True)]))

    @cached_property
    def obstacles(self) -> tuple[Obstacle, ...]:
        """What stops an answer: ids that do not meet, lists that a check finds false."""
        systems = self.experiment.systems.values()
        others = find_other_kinds(systems, self.runs)
        return (*others, *find_obstacles(self.dataset, self.list_infos))

    @property
    def tuning_split(self) -> str | None:
        """Name of the split that choices are made on; None = the evaluated queries."""
        return None if self.tuning is None else TUNE_ON


def load_lists(
    path: Path,
    systems: Collection[System],
    progress: Progress,
    *,
    cache: bool | Cache = True,
    needs_judgments: bool = True,
    groups: Mapping[str, str] | None = None,
    rerankers: Collection[str] = (),
    refined: bool = False,
) -> Dataset:
    """Load a dataset with only the lists that some system uses, and further rerank lists."""
    progress(f"reading {path.parent.name}", 0, 1)
    return load_dataset(
        path,
        runs={name for system in systems for name in system.base_runs},
        rerankers={*rerankers, *(name for system in systems for name in system.reranker_names)},
        cache=cache,
        every_query=False if needs_judgments else None,
        groups=groups,
        refined=refined,
        merged=merge_rules(systems),
    )


def prepare_dataset(
    experiment: Experiment,
    source: Source,
    dataset: Dataset,
    *,
    is_shown: bool = True,
) -> EvaluationSet:
    """Align a dataset with every repeat of its lists, and select its queries.

    Args:
        experiment: What is compared, on which split and queries.
        source: Where it was read from.
        dataset: With every list that the systems use.
        is_shown: Whether the ledger beside the dataset gets the selected queries; False = the
            caller shows no values, or records them once nothing is left that can fail.

    Raises:
        UnknownNameError: No such split, field or value.
        ConfigError: No query is left.
    """
    used = dict.fromkeys(
        name for system in experiment.systems.values() for name in system.base_runs
    )
    dataset = dataset.with_parents(merge_rules(experiment.systems.values()).parents)
    aligned = dataset.align_repeats(list(used), ties=experiment.ties)
    aligned = add_system_parents(aligned, experiment.systems.values())
    split = experiment.split
    if split is None and JUDGE_ON in dataset.splits:
        split = JUDGE_ON
    elif split == ALL_QUERIES:
        split = None
    elif split is not None and split not in dataset.splits:
        where = f"{source.where(('split',))}: {dataset.name}"
        raise UnknownNameError("split", split, {*dataset.splits, ALL_QUERIES}, where=where)
    _check_fields(experiment, source, dataset)
    check_predictions(experiment.systems.values(), source, dataset)
    by_type = {"type": ("query_type",)} if experiment.query_type is not None else {}
    filters = {
        name: (allowed, source.where(by_type.get(name, ("where", name))))
        for name, allowed in experiment.query_filters.items()
    }
    selected = _selected(aligned, dataset, split, filters)
    count = count_synthetic(dataset.queries, selected.queries)
    if 0 < count < len(selected.queries):
        raise ConfigError(
            f"{dataset.name}: {pluralize(count, 'synthetic query')} and "
            f"{len(selected.queries) - count:,} real ones would make one mean, which describes "
            "neither: give the synthetic ones a 'split' of their own in the queries file, and "
            "evaluate one split at a time (split: NAME)"
        )
    is_trained = any(map(needs_fitting, experiment.systems.values()))
    tunes = TUNE_ON in dataset.splits and split not in {TUNE_ON, None}
    tuning = _selected(aligned, dataset, TUNE_ON) if tunes else None
    task = EvaluationSet(
        experiment=experiment,
        dataset=dataset,
        runs=selected,
        tuning=tuning,
        split=split,
        measures=experiment.parse_measures(dataset.spec.binary_relevance, source),
        training=aligned if is_trained else selected,
    )
    if is_shown:
        record_shown(dataset.folder, dataset.qrels, task.shown_queries)
    return task


def check_predictions(systems: Iterable[System], source: Source, dataset: Dataset) -> None:
    """Refuse a system that goes by predicted types where no query has one.

    Raises:
        ConfigError: Says which system, and how to predict them.
    """
    for system in systems:
        if system.types == "predicted" and not any(
            PREDICTED_TYPE in query.fields for query in dataset.queries.values()
        ):
            place = source.where(("systems", system.name, "types"))
            raise ConfigError(
                f"{place}: no query of {dataset.name} has a {PREDICTED_TYPE!r}: predict them with "
                "'fusion-bench dataset classify', and name its file under 'queries' of the dataset"
            )


def _check_fields(experiment: Experiment, source: Source, dataset: Dataset) -> None:
    """Refuse fields that the queries do not have, or by which they cannot be told apart."""
    places = [("where", name) for name in experiment.where]
    places += [("slices", name) for name in experiment.slices if name not in COMPARED_FIELDS]
    for key, name in places:
        location = (key, name) if key == "where" else (key,)
        check_field(name, dataset.queries.values(), f"{source.where(location)}: {dataset.name}")


def slice_values(task: EvaluationSet) -> dict[str, tuple[str | None, ...]]:
    """The values, (Q,), of every field but the type by which results are broken down.

    Raises:
        ConfigError: A field has too many values.
    """
    values = {name: task.runs.values_of(name) for name in task.experiment.slices if name != "type"}
    for name, column in values.items():
        if (count := len(set(column))) > MAX_SLICES:
            raise ConfigError(
                f"slices: field {name!r} has {count:,} different values in {task.dataset.name}, "
                f"and at most {MAX_SLICES} can be shown: choose a field with fewer"
            )
    return values


#: The conditions of the queries: field → allowed values, and where the condition stands.
_Filters = Mapping[str, tuple[tuple[str, ...], str]]


def _selected(
    runs: AlignedRuns, dataset: Dataset, split: str | None, filters: _Filters | None = None
) -> AlignedRuns:
    """The queries of a split whose fields have one of these values each."""
    keep, conditions = np.ones(len(runs.queries), dtype=bool), filters or {}
    if split is not None:
        known = dataset.queries
        keep &= [query in known and known[query].split == split for query in runs.queries]
    for name, (allowed, where) in conditions.items():
        values = runs.values_of(name)
        present = {value for value in values if value is not None}
        if not present.intersection(allowed):
            where, value = f"{where}: {dataset.name}", min(allowed)
            title, key = ("query type", "query_type") if name == "type" else (name, f"where.{name}")
            if not present:
                raise ConfigError(
                    f"{where}: no query has a {name!r}, so no query matches {value!r}: give each "
                    f"one in the queries file, or drop {key}"
                )
            raise UnknownNameError(title, value, present, where=where)
        keep &= [value in allowed for value in values]
    if not keep.any():
        asked = [f"{n} {' or '.join(map(repr, each))}" for n, (each, _) in conditions.items()]
        names = [*conditions, "split"]
        place = "".join(f"{where}: " for _, where in [*conditions.values()][:1])
        raise ConfigError(
            f"{place}{dataset.name}: no judged query of {' and '.join(asked) or 'any kind'} in "
            f"split {split!r}: choose another {' or '.join(names)} (fusion-bench dataset show "
            "lists them)"
        )
    return runs if keep.all() else runs.subset(keep)


def find_ignored_queries(task: EvaluationSet) -> frozenset[str]:
    """The answered queries of the evaluated split and fields that have no judgment.

    Args:
        task: The evaluated queries, and the lists.
    """
    unjudged = find_unjudged_queries(task.dataset)
    return frozenset(query for query in unjudged if _is_selected(task, query))


def count_known_ignored(task: EvaluationSet) -> int:
    """How many of them the dataset's own queries file names; of a larger list alone, none."""
    if task.dataset.spec.queries is None:
        return 0
    return len(find_ignored_queries(task) & task.dataset.queries.keys())


def _is_selected(task: EvaluationSet, query: str) -> bool:
    """Whether the query, if it were judged, would be among the evaluated ones."""
    conditions = [*task.experiment.query_filters.items()]
    if task.split is not None:
        conditions.append(("split", (task.split,)))
    if not conditions:
        return True
    record = task.dataset.queries.get(query)
    return record is not None and all(record.value_of(n) in allowed for n, allowed in conditions)


def add_unjudged_queries(task: EvaluationSet) -> EvaluationSet:
    """The set on the first repeat, with the queries of its split and fields without judgments."""
    dataset = task.dataset.with_every_query()
    runs = dataset.aligned(task.runs.sources, ties=task.experiment.ties)
    keep = np.array([_is_selected(task, query) for query in runs.queries])
    return replace(task, dataset=dataset, runs=runs.subset(keep))


def find_task_warnings(
    task: EvaluationSet,
    systems: Collection[System],
    results: Sequence[str] = (),
    near_duplicates: NearDuplicates | None = None,
) -> list[DataWarning]:
    """What speaks against numbers of some systems, as ``eval`` has it.

    Args:
        task: A prepared dataset.
        systems: These systems; lists that only others read have no warnings.
        results: Names of results that are of the first repeat, in the plural.
        near_duplicates: Queries that depend on each other, where they were searched.
    """
    dataset, queries, every = task.dataset, task.runs.queries, task.list_infos
    used = {name for system in systems for name in (*system.base_runs, *system.reranker_names)}
    return find_warnings(
        [info for info in every if info.name in used],
        len(queries),
        {system.name: system.resolved_config for system in systems},
        [measure.name for measure in task.measures],
        judge=describe_judge(dataset, systems),
        grades=list_grades(dataset.qrels, queries),
        binary_relevance=dataset.spec.binary_relevance,
        judged_lists=every,
        synthetic=count_synthetic(dataset.queries, queries),
        ignored=count_known_ignored(task),
        near_duplicates=near_duplicates,
        first_trial=describe_first_repeat(dataset, *results),
        judgment_notes=dataset.qrels.notes,
    )


def collection_facts(task: EvaluationSet) -> dict[str, Any]:
    """The fields of :class:`~fusion_bench.evaluation.report_records.CollectionFacts`."""
    dataset, spec, experiment = task.dataset, task.dataset.spec, task.experiment
    return {
        "name": spec.name,
        "version": spec.version,
        "fingerprint": dataset.fingerprint,
        "split": task.split,
        "query_type": experiment.query_type,
        "where": dict(experiment.where),
        "binary_relevance": spec.binary_relevance,
        "baseline": experiment.baseline,
        "runs": task.list_infos,
        "judge": describe_judge(dataset, experiment.systems.values()),
        "judgment_notes": dataset.qrels.notes,
    }
