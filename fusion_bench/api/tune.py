"""Tune a system on data that is at hand, and test the gain on held-out queries."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fusion_bench.api.inputs.datasets import DATA_OPTIONS, dataset_folder, read_dataset
from fusion_bench.api.inputs.records import list_measures
from fusion_bench.api.inputs.systems import SystemLike, build_system, default_name
from fusion_bench.api.results.tuning_result import TuningResult
from fusion_bench.config.files.yaml_source import Source
from fusion_bench.config.models import Location, parse_model
from fusion_bench.data.records import ScoreSpace
from fusion_bench.errors import ConfigError
from fusion_bench.evaluation.in_memory import make_experiment
from fusion_bench.evaluation.run_experiment import report_provenance
from fusion_bench.experiment.experiment import Experiment
from fusion_bench.experiment.tune_settings import TuneSettings
from fusion_bench.io.dataset import Dataset
from fusion_bench.tune.looks.find_ledger import find_ledger
from fusion_bench.tune.space.open_objective import create_objective
from fusion_bench.tune.tuning_run import TuningRun
from fusion_bench.tune.validation.floor import evaluate_untuned

#: Keys of an experiment that tuning reads; all other options are those of ``tune:``.
EXPERIMENT_OPTIONS = frozenset({"alpha", "ties"})


def tune(
    qrels: object,
    runs: object = None,
    system: SystemLike = "rrf",
    *,
    trials: int = 200,
    measure: object = "nDCG@10",
    rerankers: object = None,
    score_spaces: Mapping[str, ScoreSpace] | None = None,
    queries: object = None,
    **options: Any,  # noqa: ANN401 - the models check them
) -> TuningResult:
    """Tune a system's parameters, and test the gain on queries that did not choose them.

    Below 150 queries each is held out once, by cross-fitting; with more, half of them are held out.

    Args:
        qrels: Judgments, or a dataset, in any form that ``compare`` takes. A dataset's own splits
            ``dev`` and ``test`` are used where it has them.
        runs: Runs by name, a list of runs, or names of a dataset's runs.
        system: What is tuned, and the default to beat: a method's name, ``(method, parameters)``,
            what ``rrf(…)`` or ``weighted(…)`` return, or a ``System``.
        trials: How many parameter sets are tried.
        measure: What is maximized.
        rerankers: Rerank lists by name, for a ``blend``.
        score_spaces: What the numbers of each rerank list mean; guessed from them by default.
        queries: Types, groups and splits: a path, or ``{id: …}``.
        options: Keys of ``tune:`` (``parameters``, ``sampler``, ``seed``, ``folds``, ``held_out``,
            ``min_gain``, ``timeout``, ``looks``, …), ``alpha``, ``ties``, and of a dataset
            ``binary_relevance``, ``groups``, ``judgments``.

    Returns:
        The verdict, the parameters, Optuna's study, and the comparison on held-out queries; after
        an interrupt, of what was tried so far.

    Raises:
        FusionBenchError: Something breaks a rule, or there are too few queries to split; says what.
    """
    data = {key: options.pop(key) for key in DATA_OPTIONS & set(options)}
    general = {key: options.pop(key) for key in EXPERIMENT_OPTIONS & set(options)}
    dataset = read_dataset(
        qrels, runs, rerankers=rerankers, score_spaces=score_spaces, queries=queries, **data
    )
    chosen = build_system(default_name(system), system, dataset.runs)
    experiment, source = make_experiment(
        "tune",
        {chosen.name: chosen},
        dataset=dataset.name,
        measures=list_measures(measure),
        **general,
    )
    roles = {name: run.roles for name, run in dataset.runs.items()}
    experiment.check_datasets(roles, tuple(dataset.rerankers), source)
    settings = _parse_settings({"trials": trials, "system": chosen.name, **options})
    return _run(experiment, source, settings, dataset, dataset_folder(qrels))


def _parse_settings(given: Mapping[str, object]) -> TuneSettings:
    def where(location: Location) -> str:
        return ".".join(("tune", *map(str, location)))

    return parse_model(TuneSettings, given, where)


def _run(
    experiment: Experiment,
    source: Source,
    settings: TuneSettings,
    dataset: Dataset,
    folder: Path | None,
) -> TuningResult:
    """Tune; ``folder`` is that of the dataset, None for data in memory."""
    for name in dataset.rerankers if settings.degraded == "refuse" else ():
        if (reason := dataset.degradation(name)) is not None:
            raise ConfigError(reason)
    objective = create_objective(experiment, source, settings, dataset)
    run = TuningRun(
        objective,
        dataset,
        settings,
        folder=None,
        alpha=experiment.alpha,
        looks=find_ledger(
            settings.looks, alpha=experiment.alpha, base=None, dataset=folder, out=None
        ),
        untuned=evaluate_untuned(experiment, source, dataset, objective),
    )
    return TuningResult(run.run("tune", report_provenance(experiment, source)), objective)
