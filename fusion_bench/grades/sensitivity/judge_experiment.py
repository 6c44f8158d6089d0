"""Run an experiment under the grades of every judge of its dataset."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path

from fusion_bench.config.files.yaml_source import Source
from fusion_bench.config.models import refuse_repeats
from fusion_bench.data.qrels import Qrels
from fusion_bench.errors import ConfigError
from fusion_bench.evaluation.judge_checks.dataset_judges import find_shared_families
from fusion_bench.evaluation.judge_checks.judge_warnings import find_scale_warnings
from fusion_bench.evaluation.report_records.collection import Collection as CollectionRecord
from fusion_bench.evaluation.run_experiment import (
    Progress,
    ignore_progress,
    report_provenance,
    run_on_datasets,
)
from fusion_bench.experiment.experiment import Experiment
from fusion_bench.experiment.system import System
from fusion_bench.grades.sensitivity.compare_judges import compare_orders, compare_systems
from fusion_bench.grades.sensitivity.records import ComparedJudge, JudgeSensitivity
from fusion_bench.grades.system_values import list_related, load_graded_dataset, with_grades
from fusion_bench.io.dataset import Dataset
from fusion_bench.io.judgments.load_judge import load_judge
from fusion_bench.util.files.output_folder import name_experiment
from fusion_bench.util.formatting import list_names

#: Stands for the judgments among the judges.
JUDGMENTS = "qrels"


def judge_experiment(
    experiment: Experiment,
    source: Source,
    *,
    folders: Collection[Path],
    judges: Sequence[str] = (),
    systems: Sequence[str] = (),
    dataset: str | None = None,
    progress: Progress = ignore_progress,
) -> JudgeSensitivity:
    """Evaluate the same systems under each judge, on the queries that all of them graded.

    Args:
        experiment: The experiment.
        source: Where it was read from.
        folders: Where named datasets live.
        judges: Names, the reference first; empty = the judgments, then all others.
        systems: Names, beside the baseline; empty = all.
        dataset: As the experiment names it; None = its only one.
        progress: Called as the work goes on.

    Raises:
        FusionBenchError: The experiment or its data breaks a rule, a name is unknown, or there are
            no two judges with a query in common.
    """
    chosen, loaded = load_graded_dataset(
        experiment, source, folders=folders, systems=systems, dataset=dataset, progress=progress
    )
    grades = {name: load_judge(loaded, name) for name in choose_judges(loaded, judges)}
    common = find_common_queries(loaded.name, grades)
    collections: dict[str, CollectionRecord] = {}
    for done, (name, qrels) in enumerate(grades.items()):
        progress(f"{loaded.name}: {name}", done, len(grades))
        judged = with_grades(loaded, keep_queries(qrels, common))
        collections[name] = run_on_datasets(chosen, source, [judged]).collections[0]
    reference = next(iter(collections.values()))
    return JudgeSensitivity(
        name=name_experiment(source.path),
        dataset=loaded.name,
        measure=reference.primary_measure,
        baseline=chosen.baseline,
        alpha=chosen.alpha,
        min_gain=chosen.min_gain,
        queries=len(reference.queries),
        judges=tuple(_describe_judges(loaded, grades, collections, chosen.systems.values())),
        systems=tuple(compare_systems(collections, alpha=chosen.alpha)),
        orders=tuple(compare_orders(collections)),
        data_warnings=(
            *find_scale_warnings(grades),
            *find_shared_families(loaded, grades, chosen.systems.values()),
        ),
        provenance=report_provenance(chosen, source),
    )


def choose_judges(dataset: Dataset, names: Sequence[str]) -> tuple[str, ...]:
    """The judges to compare, the reference first.

    Args:
        dataset: The dataset.
        names: As asked for; empty = all.

    Raises:
        ConfigError: Fewer than two, or one twice.
    """
    judgments = () if dataset.spec.qrels is None else (JUDGMENTS,)
    every = tuple(dict.fromkeys((*judgments, *dataset.spec.judges)))
    try:
        chosen = refuse_repeats(tuple(names)) or every
    except ValueError as error:
        raise ConfigError(f"--judge: {error}") from None
    if len(chosen) < 2:
        raise ConfigError(
            f"{dataset.name}: one judge ({list_names(chosen)}), and at least two are needed: name "
            "the file of another under 'judges' of its dataset.yaml"
        )
    return chosen


def find_common_queries(dataset: str, grades: Mapping[str, Qrels]) -> frozenset[str]:
    """The queries that every judge graded.

    Raises:
        ConfigError: There is none.
    """
    common = frozenset.intersection(*(frozenset(each.queries) for each in grades.values()))
    if not common:
        counts = ", ".join(f"{name}: {len(each):,}" for name, each in grades.items())
        raise ConfigError(
            f"{dataset}: no query that all of these judges graded ({counts}): choose others with "
            "--judge"
        )
    return common


def keep_queries(qrels: Qrels, queries: Collection[str]) -> Qrels:
    """The grades of these queries."""
    if len(queries) == len(qrels.queries):
        return qrels
    kept = {query: rows for query, rows in qrels.to_dict().items() if query in queries}
    return Qrels.from_dict(kept)


def _describe_judges(
    dataset: Dataset,
    grades: Mapping[str, Qrels],
    collections: Mapping[str, CollectionRecord],
    systems: Collection[System],
) -> Iterator[ComparedJudge]:
    spec = dataset.spec
    for name, collection in collections.items():
        judge = spec.judges.get(name)
        file = judge or spec.qrels
        yield ComparedJudge(
            name=name,
            kind="human" if file is None else file.kind,
            family=None if file is None else file.family,
            queries=len(grades[name].queries),
            sample=None if judge is None else judge.sample,
            unjudged={row.name: row.unjudged_share for row in collection.competitors.values()},
            related=list_related(dataset, name, systems),
        )
