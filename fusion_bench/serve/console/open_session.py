"""Opens an experiment for the console: its files are read and its lists aligned once."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path

import numpy as np

from fusion_bench.config.files.yaml_source import Source
from fusion_bench.config.models import parse_model
from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.errors import UnknownNameError
from fusion_bench.evaluation.prepared_dataset import ALL_JUDGED, prepare_dataset
from fusion_bench.evaluation.run_experiment import find_datasets
from fusion_bench.experiment.experiment import Experiment
from fusion_bench.experiment.tune_settings import TuneSettings
from fusion_bench.io.dataset import Dataset, load_dataset
from fusion_bench.io.dataset_config import read_spec
from fusion_bench.measures import Measure, parse_measure
from fusion_bench.serve.console.controls import ControlPanel
from fusion_bench.serve.console.session import ConsoleSession
from fusion_bench.serve.console.setting import SystemBuilder
from fusion_bench.serve.console.system_evaluator import SystemEvaluator
from fusion_bench.tune.validation.split_choice import HALF
from fusion_bench.tune.validation.splits import split_queries


def open_session(
    experiment: Experiment,
    source: Source,
    *,
    folders: Collection[Path],
    dataset: str | None = None,
    system: str | None = None,
) -> ConsoleSession:
    """Open an experiment for the console.

    Args:
        experiment: The experiment.
        source: Where it was read from.
        folders: Where named datasets live.
        dataset: As the experiment names it; by default its only one, or its first.
        system: The system to start with; by default the tuned one, the gated one, or the baseline.

    Raises:
        FusionBenchError: A file breaks a rule, or a name is unknown.
    """
    names = dict(find_datasets(experiment, source, folders))
    name = dataset or experiment.dataset_names[0]
    if name not in names:
        raise UnknownNameError("dataset", name, names, where="--dataset")
    start = _choose_system(experiment, system)
    spec, _ = read_spec(names[name])
    roles = {run: frozenset(facts.roles) for run, facts in spec.runs.items()}
    experiment.check_datasets(roles, spec.rerank, source)
    used = {run for each in experiment.systems.values() for run in each.base_runs}
    loaded = load_dataset(names[name], runs=used)
    return make_session(experiment, source, loaded, name=name, file=names[name], system=start)


def make_session(
    experiment: Experiment,
    source: Source,
    dataset: Dataset,
    *,
    name: str,
    file: Path,
    system: str,
) -> ConsoleSession:
    """The session on a dataset that is at hand.

    Args:
        experiment: The experiment.
        source: Where it was read from.
        dataset: With every list of the experiment's systems.
        name: How the experiment names it.
        file: Its ``dataset.yaml``.
        system: The system to start with.

    Raises:
        FusionBenchError: The experiment does not fit the dataset, or no query is left to tune on.
    """
    tuning = _tune_settings(experiment, system)
    task = prepare_dataset(experiment.model_copy(update=dict(ALL_JUDGED)), source, dataset)
    # A person chooses here, so few queries are not cross-fitted: half of them stay unseen.
    held_out = HALF if tuning.held_out == "auto" else tuning.held_out
    split = split_queries(
        task.runs, dataset.queries, split_seed=tuning.split_seed, held_out=held_out
    )
    shown = task.runs.subset(split.tune)
    measures = _order_measures(task.measures, tuning, dataset, source)
    roles = dict(zip(task.runs.sources, task.runs.roles, strict=True))
    builder = SystemBuilder(experiment.systems, roles, sorted(dataset.rerankers))
    rerank_depth = int(shown.rerank_ranks.max(initial=0))
    return ConsoleSession(
        experiment=experiment,
        source=source,
        dataset=dataset,
        dataset_name=name,
        dataset_file=file,
        runs=task.runs,
        split=split,
        tuning=tuning,
        panel=ControlPanel(builder, _longest_lists(shown), rerank_depth),
        evaluator=SystemEvaluator(shown, measures, dataset.spaces, dataset.qrels),
        system=system,
    )


def _choose_system(experiment: Experiment, name: str | None) -> str:
    if name is not None:
        if name not in experiment.systems:
            raise UnknownNameError("system", name, experiment.systems, where="--system")
        return name
    if experiment.tune is not None:
        return experiment.tune.system
    gated = experiment.gated_system
    return experiment.baseline if gated is None else gated.name


def _tune_settings(experiment: Experiment, system: str) -> TuneSettings:
    """What ``tune`` would run with, for the split, the least gain and the ledger of looks.

    One setting is tested, so that what is tuned beside it is left out.
    """
    data = {} if experiment.tune is None else experiment.tune.model_dump(exclude_unset=True)
    for key in ("by_query_type", "by_intent", "crag", "parameters"):
        data.pop(key, None)
    data |= {"system": system}
    data.setdefault("seed", experiment.seed)
    data.setdefault("min_gain", experiment.min_gain)
    return parse_model(TuneSettings, data, lambda place: "tune." + ".".join(map(str, place)))


def _order_measures(
    measures: tuple[Measure, ...], tuning: TuneSettings, dataset: Dataset, source: Source
) -> tuple[Measure, ...]:
    """The experiment's measures, the one that ``tune`` maximizes first."""
    if tuning.measure is None:
        return measures
    primary = parse_measure(
        tuning.measure,
        binary_relevance=dataset.spec.binary_relevance,
        where=source.where(("tune", "measure")),
    )
    return (primary, *(measure for measure in measures if measure != primary))


def _longest_lists(runs: AlignedRuns) -> Mapping[str, int]:
    """Greatest rank of each source."""
    greatest = np.max(runs.ranks, axis=1, initial=0).tolist()
    return {name: max(rank, 1) for name, rank in zip(runs.sources, greatest, strict=True)}
