"""The values of an experiment's systems under the grades of one judge."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from json import dumps
from pathlib import Path

from fusion_bench.checks.judges import find_related_systems, list_families
from fusion_bench.config.yaml_files import Source
from fusion_bench.data.qrels import Qrels
from fusion_bench.errors import ConfigError
from fusion_bench.evaluation.prepared_dataset import prepare_dataset
from fusion_bench.evaluation.run_experiment import select_systems
from fusion_bench.experiment.experiment import Experiment, find_one_dataset, read_distinct_specs
from fusion_bench.experiment.system import System, merge_rules
from fusion_bench.io.dataset import Dataset, load_dataset, load_judge
from fusion_bench.measures import parse_measure
from fusion_bench.ranking.plain_systems import needs_fitting
from fusion_bench.ranking.system_scores import evaluate_systems
from fusion_bench.stats.intervals import draw_queries
from fusion_bench.stats.values import MeasuredValues, ValueTable
from fusion_bench.util.formatting import Progress, ignore_progress


def replace_measures(names: Sequence[str]) -> list[str]:
    """The measures as an override of an experiment; none where no name is given."""
    return [f"measures={dumps(list(names))}"] if names else []


#: Says how many of the documents that a reader sees a judge graded.
JUDGED = "Judged@10"


@dataclass(frozen=True, eq=False)
class JudgeValues(ValueTable):
    """Systems under the grades of one judge.

    Attributes:
        judge: Its name.
        queries: Q ids.
        unjudged: System → mean share of its top 10 that the judge did not grade.
    """

    _: KW_ONLY
    judge: str
    queries: tuple[str, ...]
    unjudged: Mapping[str, float]


def measure_systems(
    experiment: Experiment, source: Source, dataset: Dataset, judge: str, grades: Qrels
) -> JudgeValues:
    """Measure the systems under the grades of a judge.

    Args:
        experiment: What is compared, on which split and queries.
        source: Where it was read from.
        dataset: With every list that the systems use.
        judge: The name of the judge.
        grades: Its grades.

    Raises:
        ConfigError: No query that the judge graded is left.
    """
    task = prepare_dataset(experiment, source, with_grades(dataset, grades))
    judged = parse_measure(JUDGED, binary_relevance=dataset.spec.binary_relevance, where=JUDGED)
    systems = tuple(experiment.systems.values())
    scores = dict(
        zip(
            experiment.systems,
            evaluate_systems(systems, task.runs, (*task.measures, judged), training=task.training),
            strict=True,
        )
    )
    names = tuple(measure.name for measure in task.measures)
    return JudgeValues(
        {
            name: {
                measure: MeasuredValues(each.values[m], each.repeats[:, m])
                for m, measure in enumerate(names)
            }
            for name, each in scores.items()
        },
        *(experiment.baseline, names, task.runs.groups),
        [measure.name for measure in task.measures if measure.is_bounded],
        judge=judge,
        queries=task.runs.queries,
        unjudged={name: 1 - float(each.values[-1].mean()) for name, each in scores.items()},
    )


def with_grades(dataset: Dataset, grades: Qrels) -> Dataset:
    """The dataset, and the later repeats of its lists, under other grades."""
    repeats = tuple(replace(repeat, qrels=grades) for repeat in dataset.later_repeats)
    return replace(dataset, qrels=grades, later_repeats=repeats)


def list_related(dataset: Dataset, judge: str, systems: Iterable[System]) -> tuple[str, ...]:
    """The lists that were read and the systems that are of the judge's own model family."""
    spec = dataset.spec.judges.get(judge) or dataset.spec.qrels
    family = None if spec is None else spec.family
    lists = (each.name for each in list_families(dataset) if family and each.family == family)
    return (*lists, *find_related_systems(systems, family))


def load_graded_dataset(
    experiment: Experiment,
    source: Source,
    *,
    folders: Collection[Path],
    systems: Sequence[str],
    dataset: str | None,
    progress: Progress,
) -> tuple[Experiment, Dataset]:
    """The chosen systems of an experiment, and the one dataset whose judges are asked for.

    Args:
        experiment: The experiment.
        source: Where it was read from.
        folders: Where named datasets live.
        systems: Names, beside the baseline; empty = all.
        dataset: As the experiment names it; None = its only one.
        progress: Called as the work goes on.

    Raises:
        ConfigError: Several datasets, one system alone, or one that learns from grades.
        UnknownNameError: No such system or dataset.
    """
    path = find_one_dataset(experiment, source, dataset, folders)
    chosen = select_systems(experiment, systems, dataset)
    if len(chosen.systems) < 2:
        raise ConfigError(f"{source.path}: one system: there is nothing to compare it with")
    for name, system in chosen.systems.items():
        if needs_fitting(system):
            raise ConfigError(
                f"{source.where(('systems', name))}: system {name!r} learns from the grades, so "
                "each judge would make another system of it: write its list with 'fusion-bench "
                "fuse' and name that as a run, or leave it out with --system"
            )
    for spec in read_distinct_specs([path]):
        chosen.check_datasets(spec.run_roles, spec.rerank, source)
    progress(f"reading {path.parent.name}", 0, 1)
    loaded = load_dataset(
        path,
        runs={name for system in chosen.systems.values() for name in system.base_runs},
        rerankers={name for system in chosen.systems.values() for name in system.reranker_names},
        every_query=None,
        merged=merge_rules(chosen.systems.values()),
    )
    return chosen, loaded


def draw_sample(
    experiment: Experiment,
    source: Source,
    *,
    machine: str,
    count: int,
    seed: int,
    folders: Collection[Path],
    dataset: str | None = None,
    progress: Progress = ignore_progress,
) -> tuple[str, ...]:
    """Ids of queries to judge, a random sample of those that an experiment evaluates.

    Args:
        experiment: Says the split and the conditions of the queries.
        source: Where it was read from.
        machine: The judge who graded all queries; ``qrels`` = the judgments.
        count: How many; a larger number adds to the sample of a smaller one.
        seed: Another one draws another sample.
        folders: Where named datasets live.
        dataset: As the experiment names it; None = its only one.
        progress: Called as the work goes on.

    Raises:
        FusionBenchError: A name is unknown, or there are not so many queries.
    """
    chosen, loaded = load_graded_dataset(
        experiment, source, folders=folders, systems=(), dataset=dataset, progress=progress
    )
    graded = measure_systems(chosen, source, loaded, machine, load_judge(loaded, machine))
    return draw_queries(graded.queries, count, seed=seed)
