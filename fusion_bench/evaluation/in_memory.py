"""An experiment on lists in memory, or on files that no ``dataset.yaml`` names."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from fusion_bench.config.models import parse_model
from fusion_bench.config.options import ObstacleKind
from fusion_bench.config.own_methods import describe_own
from fusion_bench.config.yaml_files import Source
from fusion_bench.data.qrels import Qrels
from fusion_bench.data.records import Query, ScoreSpace
from fusion_bench.data.run import Run
from fusion_bench.errors import ConfigError, UnknownNameError
from fusion_bench.evaluation.details.collector import DetailsCollector
from fusion_bench.evaluation.report_file import Report
from fusion_bench.evaluation.run_experiment import run_on_datasets
from fusion_bench.experiment.experiment import Experiment
from fusion_bench.experiment.overrides import expand_sweeps
from fusion_bench.io.dataset import Dataset
from fusion_bench.io.dataset_config import NO_SETTINGS, QRELS, DatasetSpec, FileSettings
from fusion_bench.io.load_records import load_stated_qrels, load_stated_run, request_list
from fusion_bench.io.looks import find_dataset_folder
from fusion_bench.io.query_groups import join_groups
from fusion_bench.io.raw_files import strip_suffixes
from fusion_bench.util.files import resolve_path
from fusion_bench.util.formatting import Progress, ignore_progress, pluralize

#: Stands where a file is named, for what was read from none.
NO_FILE = "(in memory)"


def name_dataset(qrels: Path) -> str:
    """The name of the judgments' file, or of its folder where the file has the usual name."""
    name = strip_suffixes(qrels)
    return resolve_path(qrels).parent.name or name if name.lower() == "qrels" else name


def make_dataset(
    name: str,
    qrels: Qrels,
    runs: Mapping[str, Run],
    *,
    rerankers: Mapping[str, Run] | None = None,
    score_spaces: Mapping[str, ScoreSpace] | None = None,
    queries: Mapping[str, Query] | None = None,
    qrels_path: Path | None = None,
    paths: Mapping[str, Path] | None = None,
    settings: FileSettings = NO_SETTINGS,
    **options: Any,  # noqa: ANN401 - the model checks them
) -> Dataset:
    """A dataset of judgments and lists that are at hand.

    Args:
        name: Names it; characters that a dataset's name cannot have become dashes.
        qrels: The judgments.
        runs: The sources, by name.
        rerankers: The rerank lists, by name.
        score_spaces: What the numbers of each rerank list mean; ``unbounded`` by default.
        queries: What is known of the queries, by id.
        qrels_path: The file of the judgments, if they came from one.
        paths: The file of each list that came from one, by its name.
        settings: What is stated of these files beside their paths.
        options: More of a ``dataset.yaml``: ``judgments``, ``binary_relevance``, ``groups``, …

    Raises:
        ConfigError: One of these breaks a rule of ``dataset.yaml``.
    """
    lists, spaces, files = rerankers or {}, score_spaces or {}, paths or {}

    def describe(key: str, run: Run) -> dict[str, Any]:
        when = {} if run.switch is None else {"when": dict(run.switch.condition)}
        path = str(files.get(key, NO_FILE))
        return {"path": path, "roles": sorted(run.roles), **when, **settings.keys_of(key)}

    data = {
        "name": re.sub(r"[^A-Za-z0-9]+", "-", name).strip("-") or "qrels",
        "qrels": {"path": str(qrels_path or NO_FILE), **settings.keys_of(QRELS)},
        "runs": {key: describe(key, run) for key, run in runs.items()},
        "rerank": {
            key: describe(key, run) | {"score_space": spaces.get(key, "unbounded")}
            for key, run in lists.items()
        },
        **options,
    }
    spec, known = parse_model(DatasetSpec, data), dict(queries or {})
    declared = known
    if spec.group_file is not None:
        raise ConfigError(
            "groups: without a dataset.yaml it is 'identical', 'auto' or 'none', not "
            f"{spec.groups!r}: give each query its group in the queries"
        )
    known = join_groups(spec.grouping, known, [*runs.values()], qrels, name)
    read = {
        f"{kind}/{name}": request_list(files[name], name, settings)
        for kind, names in (("runs", runs), ("rerank", lists))
        for name in names
        if name in files
    }
    return Dataset(
        spec=spec,
        qrels=qrels,
        runs=dict(runs),
        rerankers=dict(lists),
        queries=known,
        declared_queries=declared,
        files=read,
        has_file=False,
        folder=None if qrels_path is None else find_dataset_folder(qrels_path),
    )


def make_experiment(
    name: str,
    systems: Mapping[str, Any],
    *,
    dataset: str,
    baseline: str | int | None = None,
    **settings: Any,  # noqa: ANN401 - the model checks them
) -> tuple[Experiment, Source]:
    """An experiment on one dataset that is at hand, as ``read_experiment`` gives one of a file.

    Args:
        name: Names the experiment, and the report that it makes.
        systems: What is compared, by name: a ``System``, or its keys as in YAML, where a list of
            values makes a system of each.
        dataset: The dataset's name.
        baseline: The system that the others are compared with, or its place from 0; the first by
            default.
        settings: More of an experiment: ``measures``, ``split``, ``alpha``, ``gate``, …

    Returns:
        The experiment, and the source that messages and provenance name.

    Raises:
        ConfigError: A key or value breaks a rule.
        UnknownNameError: No system is named as the baseline is.
    """
    if not systems:
        raise ConfigError(f"{name}: at least one system is needed")
    expanded, _ = expand_sweeps(Source(Path(name), {"systems": dict(systems)}))
    names = expanded.data["systems"]
    chosen = 0 if baseline is None else baseline
    if isinstance(chosen, int) and not isinstance(chosen, bool) and 0 <= chosen < len(names):
        chosen = list(names)[chosen]
    if not isinstance(chosen, str):
        raise ConfigError(
            f"{name}: baseline: give the name of a system, or its place from 0 to "
            f"{len(names) - 1}, not {baseline!r:.80} (systems: {', '.join(names)})"
        )
    data = {"dataset": dataset, **settings, "baseline": chosen, "systems": names}
    source = Source(Path(name), describe_own(data))
    if chosen not in names:
        raise UnknownNameError("baseline", chosen, names, where=name)
    return parse_model(Experiment, data, source.where).apply_switch(), source


def compare_files(
    qrels: Path,
    runs: Mapping[str, Path],
    *,
    measures: Sequence[str],
    binary_relevance: int = 1,
    settings: FileSettings = NO_SETTINGS,
    details: DetailsCollector | None = None,
    progress: Progress = ignore_progress,
    allowed: Collection[ObstacleKind] = (),
) -> Report:
    """Compare run files with the first of them.

    Args:
        qrels: File of judgments.
        runs: Run files by the names of their systems. One is only measured.
        measures: Measure names, the primary one first.
        binary_relevance: Grade from which binary measures count.
        settings: What is stated of the files beside their paths.
        details: Collects what stands behind the values; None = nobody asks.
        progress: Called as the work goes on.
        allowed: Obstacles that do not stop the comparison.

    Raises:
        DataError: A file breaks a rule.
        DataCheckError: Document ids do not meet, or a check finds a list false.
    """
    progress(f"reading {pluralize(len(runs), 'list')}", 0, 1)
    dataset = make_dataset(
        name_dataset(qrels),
        load_stated_qrels(qrels, settings),
        {name: load_stated_run(path, name, settings) for name, path in runs.items()},
        qrels_path=qrels,
        paths=runs,
        settings=settings,
        binary_relevance=binary_relevance,
    )
    systems = {name: {"runs": [name]} for name in runs}
    experiment, source = make_experiment(
        "compare", systems, dataset=dataset.name, measures=list(measures)
    )
    return run_on_datasets(experiment, source, [dataset], progress, details, allowed=allowed)
