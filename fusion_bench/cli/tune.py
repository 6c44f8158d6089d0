"""Search for better numbers, and say whether they are worth shipping."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fusion_bench.cli._base import (
    DatasetFolders,
    JsonFlag,
    command_app,
    folders_for,
    format_examples,
    make_console,
)

if TYPE_CHECKING:
    from fusion_bench.config.models import Source
    from fusion_bench.experiment.experiment import Experiment
    from fusion_bench.experiment.tune_settings import TuneSettings
    from fusion_bench.tune.space.objective import TuningObjective
    from fusion_bench.tune.space.open_problem import ObjectivePaths

__all__ = ["command", "tune"]

INTERRUPTED = 130

command = command_app()


@command.command(
    "tune",
    epilog=format_examples(
        "fusion-bench tune experiments/default.yaml",
        "fusion-bench tune experiments/mine.yaml --trials 1000 --sampler cmaes --workers 4",
        "fusion-bench tune experiments/mine.yaml --timeout 600 --json",
        "fusion-bench tune experiments/mine.yaml --storage postgresql://me@db/tuning",
        "fusion-bench tune experiments/mine.yaml --cluster tcp://scheduler:8786",
        "fusion-bench eval reports/mine/tuning/tuned.yaml",
    ),
)
def tune(
    experiment: Annotated[
        Path, typer.Argument(help="The experiment's YAML file.", metavar="EXPERIMENT")
    ] = Path("experiments/default.yaml"),
    out: Annotated[
        Path | None,
        typer.Option(
            help="Folder for the report and the record. Default: reports/EXPERIMENT/tuning.",
            show_default=False,
        ),
    ] = None,
    datasets: DatasetFolders = None,
    system: Annotated[
        str | None, typer.Option(help="Tune this system.", metavar="NAME", show_default=False)
    ] = None,
    trials: Annotated[
        int | None, typer.Option(help="How many configurations to try.", show_default=False)
    ] = None,
    timeout: Annotated[
        float | None,
        typer.Option(help="Ask for no more after so many seconds.", show_default=False),
    ] = None,
    sampler: Annotated[
        str | None,
        typer.Option(
            help="tpe, cmaes, gp, qmc, random, grid or brute_force.",
            metavar="NAME",
            show_default=False,
        ),
    ] = None,
    seed: Annotated[
        int | None, typer.Option(help="Makes a run exactly repeatable.", show_default=False)
    ] = None,
    folds: Annotated[
        int | None,
        typer.Option(help="Of the nested cross-validation; 0 = none.", show_default=False),
    ] = None,
    workers: Annotated[
        int, typer.Option(help="Processes that evaluate; the result is the same.", min=1)
    ] = 1,
    storage: Annotated[
        str | None,
        typer.Option(
            help="Database through which many machines search together, such as "
            "postgresql://user@host/name. Start the same command on each.",
            metavar="URL",
            show_default=False,
        ),
    ] = None,
    cluster: Annotated[
        str | None,
        typer.Option(
            help="Evaluate on the workers of a Dask cluster that see the same files, such as "
            "tcp://host:8786, or on processes started here: local:4.",
            metavar="ADDRESS",
            show_default=False,
        ),
    ] = None,
    export: Annotated[
        str | None,
        typer.Option(
            help="Copy the finished search into an Optuna storage, such as sqlite:///study.db, "
            "for optuna-dashboard.",
            metavar="URL",
            show_default=False,
        ),
    ] = None,
    plots: Annotated[bool, typer.Option(help="Draw the PNG plots.")] = True,
    json: JsonFlag = False,
) -> None:
    """Search for better numbers, and say whether they are worth shipping.

    Tunes on some of the queries and judges on the others. A search that was cut short goes on
    where its record in the output folder ends.
    """
    from fusion_bench.experiment.experiment import read_experiment
    from fusion_bench.report.terminal import print_page
    from fusion_bench.report.tuning import build_page

    if cluster is not None:
        _refuse_two_ways(workers, storage)
    parsed, source = read_experiment(experiment)
    tuning = _tuning(
        parsed,
        source,
        system=system,
        trials=trials,
        timeout=timeout,
        sampler=sampler,
        seed=seed,
        folds=folds,
    )
    folder = out or Path("reports") / experiment.stem / "tuning"
    interrupted = False
    for name in parsed.dataset_names:
        own = folder if parsed.dataset is not None else folder / Path(name).name
        how = {"workers": workers, "storage": storage, "cluster": cluster, "export": export}
        report, written = _walk(
            parsed, source, tuning, name, own, folders_for(datasets, experiment), how, plots
        )
        interrupted |= report.interrupted
        if json:
            typer.echo(report.model_dump_json())
        else:
            print_page(build_page(report), make_console())
            typer.echo("Written: " + ", ".join(str(path) for path in written))
        if interrupted:
            raise typer.Exit(INTERRUPTED)


def _walk(
    experiment: Experiment,
    source: Source,
    tuning: TuneSettings,
    name: str,
    folder: Path,
    folders: list[Path],
    how: dict[str, Any],
    plots: bool,
) -> Any:  # noqa: ANN401 - the report and what was written
    """Tune on one dataset, and write what was found."""
    from fusion_bench.cli._progress import progress_bar
    from fusion_bench.evaluation.run_experiment import report_provenance
    from fusion_bench.io import find_dataset
    from fusion_bench.report.write import write_tuning
    from fusion_bench.tune.export_experiment import tuned_experiment
    from fusion_bench.tune.run import TuningRun
    from fusion_bench.tune.space.open_problem import (
        ObjectivePaths,
        create_objective,
        load_tuning_dataset,
    )

    with progress_bar() as progress:
        progress(f"reading {name}", 0, 1)
        path = find_dataset(name, folders, where=source.where(("dataset",)))
        dataset = load_tuning_dataset(experiment, source, tuning, path)
        objective = create_objective(experiment, source, tuning, dataset)
        enabled = experiment.v2_enabled
        paths = ObjectivePaths(source.path.resolve(), path.resolve(), tuning, enabled)
        workers, cluster = how.pop("workers"), how.pop("cluster")
        with _distributed(objective, paths, workers, cluster) as evaluated:
            walk = TuningRun(
                evaluated,
                dataset,
                tuning,
                folder,
                alpha=experiment.alpha,
                interval=experiment.interval,
                progress=progress,
                **how,
            )
            report = walk(source.path.stem, report_provenance(experiment, source))
        progress("writing the report", 1, 1)
        tuned = tuned_experiment(experiment, report, name)
        return report, write_tuning(report, folder, tuned=tuned, plots=plots)


def _refuse_two_ways(workers: int, storage: str | None) -> None:
    """A search is evaluated in one place.

    Raises:
        ConfigError: There is a second one.
    """
    from fusion_bench.errors import ConfigError

    other = "--storage" if storage is not None else "--workers" if workers > 1 else None
    if other is not None:
        raise ConfigError(f"--cluster: evaluates every trial already: leave out {other}")


@contextmanager
def _distributed(
    objective: TuningObjective, paths: ObjectivePaths, workers: int, cluster: str | None
) -> Iterator[TuningObjective]:
    """The objective, evaluated by the workers that were asked for."""
    if workers == 1 and cluster is None:
        yield objective
        return
    from fusion_bench.tune.distributed import (
        connect_cluster,
        distribute_objective,
        start_processes,
    )

    with start_processes(workers) if cluster is None else connect_cluster(cluster) as pool:
        yield distribute_objective(objective, paths, pool)


def _tuning(experiment: Experiment, source: Source, **given: Any) -> TuneSettings:  # noqa: ANN401
    """What the experiment's ``tune:`` says, with what the command line says over it.

    Raises:
        ConfigError: Neither says which system, or a value breaks a rule.
    """
    from fusion_bench.config.models import validated
    from fusion_bench.errors import ConfigError, UnknownNameError
    from fusion_bench.experiment.tune_settings import TuneSettings

    own = {} if experiment.tune is None else experiment.tune.model_dump(exclude_unset=True)
    said = own | {key: value for key, value in given.items() if value is not None}
    if "system" not in said:
        raise ConfigError(
            f"{source.path}: has no 'tune': add 'tune: {{system: NAME}}', or name one with --system"
        )
    if said["system"] not in experiment.systems:
        raise UnknownNameError("system", said["system"], experiment.systems, where="--system")
    said.setdefault("seed", experiment.seed)
    return validated(TuneSettings, said, lambda place: "tune." + ".".join(map(str, place)))
