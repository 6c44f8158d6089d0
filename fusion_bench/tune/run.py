"""The whole of ``tune``: each dataset's run, the report, the tuned experiment."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, TypeAlias

from fusion_bench.config.models import parse_model
from fusion_bench.config.yaml_files import Source, format_yaml
from fusion_bench.errors import ConfigError
from fusion_bench.evaluation.prepared_dataset import load_lists
from fusion_bench.evaluation.run_experiment import report_provenance
from fusion_bench.experiment.experiment import (
    Experiment,
    find_datasets,
    read_distinct_specs,
    relocate_dataset,
)
from fusion_bench.experiment.settings import TuneSettings
from fusion_bench.io.dataset import Dataset
from fusion_bench.report.answer_texts import name_verdict
from fusion_bench.report.page import NextStep
from fusion_bench.report.tuning_records import TuningReport
from fusion_bench.report.write import write_tuning
from fusion_bench.tune.abstain import fit_threshold
from fusion_bench.tune.distribution import find_database_file, open_workers, show_address
from fusion_bench.tune.held_out import evaluate_untuned
from fusion_bench.tune.looks import find_ledger
from fusion_bench.tune.objective import (
    ObjectivePaths,
    create_objective,
    express_in_engine,
    load_tuning_dataset,
)
from fusion_bench.tune.options import TuneOptions
from fusion_bench.tune.tuning_run import TuningRun
from fusion_bench.util.files import check_regular, explain_error, name_experiment, resolve_path
from fusion_bench.util.formatting import Progress, format_number

#: Makes a progress bar.
ProgressBar: TypeAlias = Callable[[], AbstractContextManager[Progress]]


def check_storage_file(option: str, url: str | None) -> None:
    """Refuse the address of an SQLite file that cannot be one; SQLite does not say why.

    Args:
        option: The option that names it.
        url: The address; other databases and None pass.

    Raises:
        ConfigError: A folder, a named pipe, a socket or a device bears its name, its folder is not
            there, or no file can have the name.
    """
    path = None if url is None else find_database_file(url)
    if url is None or path is None:
        return
    try:
        check_regular(path)
        if path.is_dir():
            problem = "a folder, and a file is needed"
        elif not path.parent.is_dir():
            problem = f"there is no folder {path.parent}: make it"
        else:
            return
    except (OSError, ValueError) as error:
        problem = explain_error(error)
    raise ConfigError(f"{option} {show_address(url)}: {problem}")


#: The experiment's settings that stay.
KEPT = ("measures", "ties", "alpha", "correction", "min_gain", "resamples", "seed")
#: Where the dataset has no splits of its own.
CAVEAT = (
    "eval takes all queries, those it was tuned on as well: the comparison on held-out queries is "
    "in tuning.md."
)


def tuned_experiment(experiment: Experiment, report: TuningReport, dataset: str) -> str:
    """The default, the tuned system and what is recommended side by side, as YAML.

    Args:
        experiment: The tuned experiment.
        report: Of the tuning run.
        dataset: How the experiment names the dataset.
    """
    default = experiment.systems[report.system]
    name = f"{report.system} tuned"
    while name in experiment.systems:
        name += " again"
    text = f"{report.system} as it was and as tuned on {report.dataset}: {report.advice.sentence} "
    text += f"Verdict against the default: {name_verdict(report.verdict)}"
    if (look := report.look) is not None:
        number = "looks not counted" if look.number is None else f"look {look.number}"
        text += f" ({number}, one-sided level {look.level:.2g})"
    text += "."
    if report.verdict == "unjudged decide" and report.unjudged is not None:
        text += f" Held out {format_number(report.held_out.difference, signed=True)}; "
        text += f"{report.unjudged.description}."
    data: dict[str, Any] = {
        "description": text,
        **({} if report.split_seed is None else {"caveat": CAVEAT}),
        "dataset": dataset,
        "baseline": report.system,
        **experiment.model_dump(mode="json", include=set(KEPT)),
        **experiment.model_dump(mode="json", include={"crag"}, exclude_none=True),
        "systems": {report.system: default.resolved_config, name: report.tuned_config},
    }
    if report.advice.kind == "use untuned" and report.advice.name not in data["systems"]:
        data["systems"][report.advice.name] = report.advice.config
    if report.per_type is not None:
        data["systems"][f"{name} by {report.per_type.field}"] = report.per_type.config
    return format_yaml(data)


def run_tuning(
    experiment: Experiment,
    source: Source,
    options: TuneOptions,
    out: Path,
    folders: Sequence[Path],
    progress_bar: ProgressBar,
    plan_next: Callable[[TuningReport, Sequence[Path]], Iterable[NextStep]] = lambda *_: (),
) -> Iterator[tuple[TuningReport, list[Path]]]:
    """Tune an experiment's system on each of its datasets, and write the reports.

    Args:
        experiment: The experiment.
        source: The file that it was read from, with the values that replace the file's.
        options: What is tuned, and by whom.
        out: Folder for the reports and the logs.
        folders: Folders with datasets.
        progress_bar: Makes a progress bar for each dataset.
        plan_next: The commands that follow from a report and its experiments, for its page.

    Yields:
        The report of each dataset and the files written; an interrupted one is the last.

    Raises:
        FusionBenchError: A file or an option breaks a rule.
    """
    other = "--storage" if options.storage else "--workers" if options.workers > 1 else None
    if options.cluster is not None and other is not None:
        raise ConfigError(f"--cluster: evaluates every trial already: leave out {other}")
    data = {} if experiment.tune is None else experiment.tune.model_dump(exclude_unset=True)
    data |= options.settings
    if "system" not in data:
        raise ConfigError(
            f"{source.path}: has no 'tune': add 'tune: {{system: NAME}}', or name one with --system"
        )
    experiment.find_system(data["system"])
    data.setdefault("seed", experiment.seed)
    data.setdefault("min_gain", experiment.min_gain)
    tuning = parse_model(TuneSettings, data, "tune")
    check_storage_file("--storage", options.storage)
    check_storage_file("--export-study", options.export)
    datasets = list(find_datasets(experiment, source, folders))
    specs = list(read_distinct_specs(file for _, file in datasets))
    for (name, file), spec in zip(datasets, specs, strict=True):
        folder = out if experiment.dataset is not None else out / spec.name
        with progress_bar() as progress:
            progress(f"reading {name}", 0, 1)
            expressed = express_in_engine(experiment, source, tuning, spec.run_roles)
            report = _tune_dataset(expressed, source, tuning, options, file, folder, progress)
            progress("writing the report", 1, 1)
            tuned = tuned_experiment(expressed, report, relocate_dataset(name, file, folder))
            names = ("tuned.yaml", "front.yaml")[: 1 if report.front is None else 2]
            steps = tuple(plan_next(report, [folder / name for name in names]))
            files = write_tuning(report, folder, options, tuned=tuned, next_steps=steps)
        yield report, files
        if report.interrupted:
            return


def load_all_lists(
    experiment: Experiment, dataset: Dataset, path: Path, progress: Progress
) -> Dataset:
    """The dataset with the lists of every system of the experiment.

    Args:
        experiment: The experiment.
        dataset: With the lists of the tuned system; taken where they are enough.
        path: Its ``dataset.yaml``.
        progress: Called as the work goes on.
    """
    systems = experiment.systems.values()
    runs = {name for system in systems for name in system.base_runs}
    rerankers = {name for system in systems for name in system.reranker_names}
    if runs <= set(dataset.runs) and rerankers <= set(dataset.rerankers):
        return dataset
    return load_lists(path, list(systems), progress)


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
    with open_workers(objective, paths, options) as distributed:
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
            expected=experiment.expected_lint,
            looks=find_ledger(
                tuning.looks,
                alpha=experiment.alpha,
                base=source.path.parent,
                dataset=file.parent,
                out=folder,
            ),
            untuned=evaluate_untuned(
                experiment,
                source,
                load_all_lists(experiment, dataset, file, progress),
                objective,
                allowed=options.allowed,
            ),
        )
        report = run.run(name_experiment(source.path), report_provenance(experiment, source))
    abstain = fit_threshold(experiment, source, tuning, dataset, report)
    return report.model_copy(update={"abstain": abstain})
