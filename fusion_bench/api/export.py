"""Write a system as the configuration of a search engine or library, as the command does."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from fusion_bench.api.inputs.datasets import read_dataset
from fusion_bench.api.inputs.records import is_path, list_measures
from fusion_bench.api.inputs.systems import build_system, default_name
from fusion_bench.api.results.tuning_result import TuningResult
from fusion_bench.errors import ConfigError
from fusion_bench.evaluation.in_memory import make_experiment
from fusion_bench.experiment.dialect import find_engine
from fusion_bench.experiment.experiment import read_experiment
from fusion_bench.export.export_experiment import export_experiment
from fusion_bench.export.export_system import ExportData, ExportOptions, export_system
from fusion_bench.export.records import ExportReport
from fusion_bench.io.dataset_search import find_folders

#: Suffixes of an experiment's file.
YAML = {".yaml", ".yml"}


def export(
    system: object,
    to: str,
    *,
    name: str | None = None,
    dataset: object = None,
    query_type: str | None = None,
    intent: str | None = None,
    replay: bool | None = None,
    folders: Collection[str | os.PathLike[str]] | None = None,
    **options: Any,  # noqa: ANN401 - the models check them
) -> ExportReport:
    """Write a system in an engine's own configuration, and say how well that works.

    Args:
        system: A ``System``, what ``tune`` returned, or an experiment's file.
        to: The engine: ``elasticsearch``, ``qdrant``, ``langchain``, …
        name: Of the system in the experiment's file.
        dataset: Gives the roles of the sources, and is replayed on: a dataset in any form that
            ``compare`` takes. Of an experiment's file, by name or path; its own by default.
        query_type: Write the numbers of this query type.
        intent: Write the numbers of this intent.
        replay: Whether to replay what is written on the dataset; by default where it is
            approximate.
        folders: Where named datasets live, for an experiment's file.
        options: Keys of an experiment for the replay: ``measures``, ``split``, ``alpha``, …

    Returns:
        ``fidelity``, ``reasons``, ``notes``, ``files`` by name, ``replays``; ``write(folder)``
        writes the files.

    Raises:
        FusionBenchError: Something breaks a rule; says what.

    >>> from fusion_bench import System
    >>> report = export(System("s", ["bm25", "dense"], depth=50, top_k=10), "elasticsearch")
    >>> report.fidelity, list(report.files)
    ('exact', ['search.json'])
    """
    find_engine(to, where="to")
    asked = ExportOptions(to, query_type, intent, replay)
    if is_path(system) and Path(system).suffix.lower() in YAML:
        experiment, source = read_experiment(Path(system))
        if options:
            raise ConfigError(
                f"{', '.join(options)}: given by the experiment's file: change it there"
            )
        return export_experiment(
            experiment,
            source,
            asked,
            folders=find_folders(folders, Path(system)),
            system=name,
            dataset=None if dataset is None else str(dataset),
        )
    return _export_at_hand(
        system.system if isinstance(system, TuningResult) else system,
        name,
        dataset,
        asked,
        options,
    )


def _export_at_hand(
    system: Any,  # noqa: ANN401 - many kinds
    name: str | None,
    dataset: object,
    chosen: ExportOptions,
    settings: Mapping[str, Any],
) -> ExportReport:
    """A system that no file names, on a dataset that is at hand or none."""
    given = None if dataset is None else read_dataset(dataset, needs_judgments=False)
    runs = {} if given is None else given.runs
    built = build_system(name or default_name(system), system, runs)
    listed: dict[str, Any] = {
        k: list_measures(v) if k == "measures" else v for k, v in settings.items()
    }
    experiment, source = make_experiment(
        "export", {built.name: built}, dataset="none" if given is None else given.name, **listed
    )
    if given is None:
        return export_system(experiment, source, built, ExportData({}), chosen)
    roles = {run: frozenset(item.roles) for run, item in given.runs.items()}
    experiment.check_datasets(roles, tuple(given.rerankers), source)
    conditions = {name: run.when for name, run in given.spec.runs.items() if run.when}
    data = ExportData(roles, lambda _: [given], conditions, given.is_judged)
    return export_system(experiment, source, built, data, chosen)
