"""The whole of ``tune``: for each dataset split, search, cross-validate, evaluate and report."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from fusion_bench.config.files.yaml_source import Source
from fusion_bench.config.models import parse_model
from fusion_bench.errors import ConfigError, UnknownNameError
from fusion_bench.evaluation.run_experiment import (
    Progress,
    find_datasets,
    read_distinct_specs,
    report_provenance,
)
from fusion_bench.experiment.experiment import Experiment
from fusion_bench.experiment.tune_settings import TuneSettings
from fusion_bench.report.tuning_records.tuning_report import TuningReport
from fusion_bench.report.write import write_tuning
from fusion_bench.tune.export_experiment import relocate_dataset, tuned_experiment
from fusion_bench.tune.looks.find_ledger import find_ledger
from fusion_bench.tune.options import TuneOptions
from fusion_bench.tune.search.storage_file import check_storage_file
from fusion_bench.tune.space.open_objective import (
    ObjectivePaths,
    create_objective,
    load_tuning_dataset,
)
from fusion_bench.tune.tuning_run import TuningRun
from fusion_bench.tune.validation.floor import (
    evaluate_untuned,
    load_all_lists,
)
from fusion_bench.util.files.output_folder import name_experiment
from fusion_bench.util.files.real_paths import resolve_path


def run_tuning(
    experiment: Experiment, source: Source, options: TuneOptions
) -> Iterator[tuple[TuningReport, list[Path]]]:
    """Tune an experiment's system on each of its datasets, and write the reports.

    Args:
        experiment: The experiment.
        source: The file that it was read from, with the values that replace the file's.
        options: All else.

    Yields:
        The report of each dataset and the files written; an interrupted one is the last.

    Raises:
        FusionBenchError: A file or an option breaks a rule.
    """
    tuning = _merge_settings(experiment, source, options.overrides)
    check_storage_file("--storage", options.storage)
    check_storage_file("--export", options.export)
    for name, file, folder in _list_datasets(experiment, source, options):
        with options.progress() as progress:
            progress(f"reading {name}", 0, 1)
            report = _tune_dataset(experiment, source, tuning, options, file, folder, progress)
            progress("writing the report", 1, 1)
            tuned = tuned_experiment(experiment, report, relocate_dataset(name, file, folder))
            files = write_tuning(
                report,
                folder,
                tuned=tuned,
                plots=options.plots,
                html=options.html,
                plot_format=options.plot_format,
                tables=options.tables,
            )
        yield report, files
        if report.interrupted:
            return


def _tune_dataset(
    experiment: Experiment,
    source: Source,
    tuning: TuneSettings,
    options: TuneOptions,
    file: Path,
    folder: Path,
    progress: Progress,
) -> TuningReport:
    """Tune on one dataset.

    Args:
        experiment: The experiment.
        source: Where it was read from.
        tuning: The settings.
        options: All else.
        file: The ``dataset.yaml``.
        folder: Of its outputs.
        progress: Called at each step.
    """
    dataset = load_tuning_dataset(experiment, source, tuning, file)
    objective = create_objective(experiment, source, tuning, dataset)
    paths = ObjectivePaths(
        resolve_path(source.path),
        resolve_path(file),
        tuning,
        v2_enabled=experiment.v2_enabled,
        overrides=source.override_texts,
    )
    with options.distribute(objective, paths) as distributed:
        run = TuningRun(
            distributed,
            dataset,
            tuning,
            folder,
            alpha=experiment.alpha,
            storage=options.storage,
            export=options.export,
            progress=progress,
            ignored=experiment.lint.ignore,
            looks=find_ledger(
                tuning.looks,
                alpha=experiment.alpha,
                base=source.path.parent,
                dataset=file.parent,
                out=folder,
            ),
            untuned=evaluate_untuned(
                experiment, source, load_all_lists(experiment, dataset, file, progress), objective
            ),
        )
        return run.run(name_experiment(source.path), report_provenance(experiment, source))


def _list_datasets(
    experiment: Experiment, source: Source, options: TuneOptions
) -> list[tuple[str, Path, Path]]:
    """How the experiment names each dataset, its ``dataset.yaml``, and the folder of its outputs.

    Raises:
        ConfigError: Two datasets have the same name.
        UnknownNameError: There is none of that name.
    """
    datasets = list(find_datasets(experiment, source, options.folders))
    names = [spec.name for spec in read_distinct_specs(file for _, file in datasets)]
    is_single = experiment.dataset is not None
    return [
        (given, file, options.out if is_single else options.out / name)
        for (given, file), name in zip(datasets, names, strict=True)
    ]


def _merge_settings(
    experiment: Experiment, source: Source, overrides: Mapping[str, object]
) -> TuneSettings:
    """The experiment's ``tune:`` with the overrides.

    Raises:
        ConfigError: No system is named, or a value breaks a rule.
    """
    data = {} if experiment.tune is None else experiment.tune.model_dump(exclude_unset=True)
    data |= {key: value for key, value in overrides.items() if value is not None}
    if "system" not in data:
        raise ConfigError(
            f"{source.path}: has no 'tune': add 'tune: {{system: NAME}}', or name one with --system"
        )
    if data["system"] not in experiment.systems:
        raise UnknownNameError("system", data["system"], experiment.systems, where="--system")
    data.setdefault("seed", experiment.seed)
    data.setdefault("min_gain", experiment.min_gain)
    return parse_model(TuneSettings, data, lambda place: "tune." + ".".join(map(str, place)))
