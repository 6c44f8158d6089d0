"""Walks the whole pipe: an experiment in, a report out."""

from __future__ import annotations

import hashlib
import platform
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from fusion_bench import measures as measure
from fusion_bench._version import ENGINE, __version__
from fusion_bench.checks.dataset_facts import describe_first_repeat
from fusion_bench.checks.obstacles import refuse_obstacles
from fusion_bench.checks.query_warnings import count_synthetic, find_near_duplicates, list_grades
from fusion_bench.config.options import ObstacleKind
from fusion_bench.config.yaml_files import Source
from fusion_bench.errors import UnknownNameError
from fusion_bench.evaluation import results
from fusion_bench.evaluation.assessment import Assessment, assess_systems
from fusion_bench.evaluation.compared_reports import read_inference_settings
from fusion_bench.evaluation.details.collector import DetailsCollector
from fusion_bench.evaluation.prepared_dataset import (
    EvaluationSet,
    collection_facts,
    count_known_ignored,
    load_lists,
    prepare_dataset,
    slice_values,
)
from fusion_bench.evaluation.report_file import Provenance, Report
from fusion_bench.evaluation.report_records import Collection as CollectionRecord
from fusion_bench.evaluation.report_records import CragResult
from fusion_bench.experiment.experiment import Experiment, find_datasets, read_distinct_specs
from fusion_bench.experiment.system import System
from fusion_bench.io.dataset import Dataset
from fusion_bench.io.dataset_config import read_spec
from fusion_bench.io.looks import record_shown
from fusion_bench.stats.intervals import exact_mean
from fusion_bench.util.files import name_experiment, show_path
from fusion_bench.util.formatting import Progress, ignore_progress


def run_experiment(
    experiment: Experiment,
    source: Source,
    *,
    folders: Collection[Path],
    split: str | None = None,
    query_type: str | None = None,
    where: Mapping[str, tuple[str, ...]] | None = None,
    cache: bool = True,
    progress: Progress = ignore_progress,
    details: DetailsCollector | None = None,
    allowed: Collection[ObstacleKind] = (),
) -> Report:
    """Run an experiment.

    Args:
        experiment: What to compare.
        source: Where it was read from, for messages and provenance.
        folders: Where named datasets live.
        split: Instead of the experiment's own.
        query_type: Instead of the experiment's own.
        where: Values that fields of the queries must have, beside the experiment's own.
        cache: Whether what was read before may be taken from the cache beside a dataset.
        progress: Called as the work goes on.
        details: Collects what stands behind the values.
        allowed: Obstacles that do not stop the comparison.

    Raises:
        DataCheckError: Document ids do not meet, or a check finds a list false.
        FusionBenchError: Whatever is wrong with the experiment or its data.
    """
    if details is not None:
        details.check_names(experiment, f"{source.path}: detail")
    paths = [path for _, path in find_datasets(experiment, source, folders)]
    _check(experiment, source, paths)
    conditions = {**experiment.where, **(where or {})} or None
    overrides = {"split": split, "query_type": query_type, "where": conditions}
    asked = {key: value for key, value in overrides.items() if value is not None}
    experiment = experiment.model_copy(update=asked)
    source = source.with_options(
        {
            **{(key,): f"--{key.replace('_', '-')}" for key in asked if key != "where"},
            **{("where", name): f"--where {name}" for name in where or ()},
        }
    )
    load = load_lists if experiment.crag is None else _load_for_crag
    systems = experiment.systems.values()
    datasets = (load(path, systems, progress, cache=cache) for path in paths)
    return run_on_datasets(experiment, source, datasets, progress, details, allowed=allowed)


def _check(experiment: Experiment, source: Source, paths: Collection[Path]) -> None:
    """Check every dataset before the first is computed."""
    for spec in read_distinct_specs(paths):
        experiment.check_datasets(spec.run_roles, spec.rerank, source)
        experiment.parse_measures(spec.binary_relevance, source)


def _load_for_crag(
    path: Path, systems: Collection[System], progress: Progress, *, cache: bool
) -> Dataset:
    """A dataset with every rerank list of absolute scores, and the lists of refined queries."""
    from fusion_bench.evaluation.crag import absolute_rerankers  # late: few ask for verdicts

    spec, _ = read_spec(path)
    absolute = absolute_rerankers({n: each.score_space for n, each in spec.rerank.items()})
    load = partial(load_lists, path, systems, progress, cache=cache, rerankers=absolute)
    return replace(load(), refined=load(refined=True) if spec.has_refined_lists else None)


def run_on_datasets(
    experiment: Experiment,
    source: Source,
    datasets: Iterable[Dataset],
    progress: Progress = ignore_progress,
    details: DetailsCollector | None = None,
    *,
    samples_ties: bool = True,
    allowed: Collection[ObstacleKind] = (),
) -> Report:
    """Run an experiment on datasets that are at hand; see :func:`run_experiment`.

    Args:
        experiment: What to compare.
        source: Where it was read from.
        datasets: Each with the lists that the systems use.
        progress: Called as the work goes on.
        details: Collects what stands behind the values.
        samples_ties: Whether to settle ties inside lists at random, the longest part where there
            are many; what depends on them is unknown otherwise.
        allowed: Obstacles that do not stop the comparison.
    """
    collections = []
    shown = []
    distributions: dict[str, str] = {}
    for dataset in datasets:
        progress(f"{dataset.name}: aligning", 0, 1)
        task = prepare_dataset(experiment, source, dataset, is_shown=False)
        task = replace(task, samples_ties=samples_ties)
        refuse_obstacles(dataset.name, task.obstacles, allowed)
        collections.append(_collection(task, progress, details))
        distributions |= measure.list_distributions(task.measures)
        shown.append((dataset.folder, dataset.qrels, task.shown_queries))
    name = name_experiment(source.path)
    progress("comparing", 0, 1)
    settings = experiment.model_dump(mode="json", exclude={"systems", "gate"})
    report = Report(
        name=name,
        settings={
            **settings,
            **({"measure_distributions": distributions} if distributions else {}),
        },
        provenance=report_provenance(experiment, source),
        collections=results.add_comparisons(collections, read_inference_settings(settings, name)),
    )
    for each in shown:  # last: a refused experiment shows no value
        record_shown(*each)
    return report


def _collection(
    task: EvaluationSet, progress: Progress, details: DetailsCollector | None
) -> CollectionRecord:
    dataset, systems = task.dataset, task.experiment.systems
    assessed = assess_systems(task, progress, details)
    progress(f"{dataset.name}: sources alone", len(systems), len(systems))
    sources = results.score_sources(task)
    spec, abstentions = dataset.spec, {}
    if any(system.abstain is not None for system in systems.values()):
        from fusion_bench.evaluation.answered_queries import (
            measure_abstentions,  # late: few abstain
        )

        abstentions = measure_abstentions(task)
    crag: tuple[CragResult, ...] = ()
    if task.experiment.crag is not None:
        from fusion_bench.evaluation.crag import judge_lists  # late, as above

        crag = judge_lists(task, {name: each.repeats[0, 0] for name, each in assessed.items()})
    return CollectionRecord(
        **collection_facts(task),
        digests=dataset.digests(),
        tuning_split=task.tuning_split,
        judgments=spec.judgments,
        measures=tuple(m.name for m in task.measures),
        queries=task.runs.queries,
        types=task.runs.types,
        slices=slice_values(task),
        groups=task.runs.groups,
        grouping=spec.grouping,
        has_irrelevant_judgments=task.has_irrelevant_judgments,
        grades=list_grades(dataset.qrels, task.runs.queries),
        **_describe_empty_queries(task, assessed),
        obstacles=task.obstacles,
        systems=tuple(
            row.model_copy(update={"abstain": abstentions.get(row.name)})
            for row in results.list_results(task, assessed, sources)
        ),
        fusion=results.compare_fusions(task, assessed, sources),
        near_duplicates=find_near_duplicates(dataset, task.runs.queries),
        synthetic_queries=count_synthetic(dataset.queries, task.runs.queries),
        ignored_queries=count_known_ignored(task),
        crag=crag,
        first_trial=describe_first_repeat(
            dataset, *(["CRAG's verdicts"] if task.experiment.crag else [])
        ),
    )


def _describe_empty_queries(
    task: EvaluationSet, assessed: Mapping[str, Assessment]
) -> dict[str, Any]:
    """How many queries have nothing relevant, and the primary means over the others."""
    is_empty = measure.no_relevant(task.runs, task.dataset.spec.binary_relevance)
    # A graded measure may find something in documents below that grade.
    is_zero = all((each.values[0, is_empty] == 0).all() for each in assessed.values())
    means = {}
    if is_zero and 0 < is_empty.sum() < len(is_empty):
        means = {n: exact_mean(each.values[0, ~is_empty]) for n, each in assessed.items()}
    return {"queries_without_relevant": int(is_empty.sum()), "means_of_others": means}


def report_provenance(experiment: Experiment, source: Source) -> Provenance:
    """What made a report: when, from which file, with which versions."""
    from importlib.metadata import distribution  # late, as it is slow

    versions = {}
    for name in ("numpy", "scipy", "pydantic", "ir-measures", "pytrec-eval-terrier"):
        text = distribution(name).read_text("METADATA") or ""  # a parser of it takes 2 ms
        line = re.search(r"^Version: (\S+)", text, re.MULTILINE)
        versions[name] = distribution(name).version if line is None else line[1]
    return Provenance(
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        source=source.path.name,
        source_path=show_path(source.path),
        source_sha256=hashlib.sha256(repr(source.data).encode()).hexdigest(),
        versions={
            "rank-fusion-bench": __version__,
            "engine": str(ENGINE),
            "python": platform.python_version(),
            **versions,
        },
        v2_enabled=experiment.v2_enabled,
        overrides=source.override_texts,
    )


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
    names = dict.fromkeys((experiment.baseline, *(systems or experiment.systems)))
    kept = {name: experiment.find_system(name) for name in names}
    if dataset is not None and dataset not in experiment.dataset_names:
        raise UnknownNameError("dataset", dataset, experiment.dataset_names, where="--dataset")
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
    _check(experiment, source, paths)
    for path in paths:
        loaded = load_lists(path, experiment.systems.values(), progress)
        progress(f"{loaded.name}: aligning", 0, 1)
        yield prepare_dataset(experiment, source, loaded)
