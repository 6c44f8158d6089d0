"""Tune a system's parameters and test the gain on held-out queries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import fusion_bench.cli.application.app as base
from fusion_bench.cli.application.console import print_result
from fusion_bench.cli.application.process import ExitCode, describe_exit_codes
from fusion_bench.config.models import MOST_WORKERS

if TYPE_CHECKING:  # imported late, as it is slow
    from fusion_bench.report.tuning_records import TuningReport

command = base.command_app()


@command.command(
    "tune",
    epilog=base.format_examples(
        "fusion-bench tune experiments/default.yaml",
        "fusion-bench tune experiments/mine.yaml --trials 1000 --sampler cmaes --workers 4",
        "fusion-bench tune experiments/mine.yaml --timeout 600 --json",
        "fusion-bench tune experiments/mine.yaml --markdown - --plot-format svg",
        "fusion-bench tune experiments/mine.yaml --storage postgresql://me@db/tuning",
        "fusion-bench tune experiments/mine.yaml --cluster tcp://scheduler:8786",
        "fusion-bench eval reports/mine/tuning/tuned.yaml",
    )
    + "\n\n"
    + describe_exit_codes(ExitCode.INCONCLUSIVE),
)
def tune(
    experiment: base.ExperimentFile = base.DEFAULT,
    out: Annotated[
        Path | None,
        typer.Option(
            help="Folder for the report and the logs. Default: reports/EXPERIMENT/tuning."
        ),
    ] = None,
    datasets: base.DatasetFolders = None,
    replaced: base.SetOption = None,
    system: Annotated[str | None, typer.Option(help="Tune this system.", metavar="NAME")] = None,
    trials: Annotated[int | None, typer.Option(help="How many parameter sets to try.")] = None,
    timeout: Annotated[
        float | None, typer.Option(help="Stop starting trials after this many seconds.")
    ] = None,
    sampler: Annotated[
        str | None,
        typer.Option(help="tpe, cmaes, gp, qmc, random, grid or brute_force.", metavar="NAME"),
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Seed of the search and the tests.")] = None,
    folds: Annotated[
        int | None, typer.Option(help="Folds of the nested cross-validation; 0 = none.")
    ] = None,
    workers: Annotated[
        int,
        typer.Option(
            help="Processes that evaluate trials; results do not depend on it.",
            min=1,
            max=MOST_WORKERS,
        ),
    ] = 1,
    storage: Annotated[
        str | None,
        typer.Option(
            help="Database through which several machines search together, such as "
            "postgresql://user@host/name. Run the same command on each.",
            metavar="URL",
        ),
    ] = None,
    cluster: Annotated[
        str | None,
        typer.Option(
            help="Evaluate on a Dask cluster whose workers see the same files, such as "
            "tcp://host:8786; local:4 starts four processes.",
            metavar="ADDRESS",
        ),
    ] = None,
    export: Annotated[
        str | None,
        typer.Option(
            help="Copy the finished search into an Optuna storage, such as sqlite:///study.db, "
            "for optuna-dashboard.",
            metavar="URL",
        ),
    ] = None,
    plots: base.PlotsFlag = True,
    plot_format: base.PlotFormatOption = base.PlotFormat.PNG,
    tables: base.TableFormats = None,
    html: base.HtmlFlag = True,
    markdown: base.MarkdownFile = None,
    json: base.JsonFlag = False,
) -> None:
    """Tune a system's parameters and test the gain on held-out queries.

    An interrupted search continues from its log in the output folder.
    """
    from fusion_bench.cli.application.progress import progress_bar
    from fusion_bench.io.outputs import check_output, refuse_inputs
    from fusion_bench.tune.run import TuneOptions, run_tuning
    from fusion_bench.util.file_paths import name_experiment

    base.refuse_two_outputs(markdown, as_json=json)
    options = TuneOptions(
        out=out or Path("reports") / name_experiment(experiment) / "tuning",
        folders=base.folders_for(datasets, experiment),
        progress=progress_bar,
        overrides={
            "system": system,
            "trials": trials,
            "timeout": timeout,
            "sampler": sampler,
            "seed": seed,
            "folds": folds,
        },
        workers=workers,
        cluster=cluster,
        storage=storage,
        export=export,
        plots=plots,
        plot_format=plot_format.value,
        tables=tables or (),
        html=html,
    )
    verdicts = []
    with base.open_experiment(experiment, replaced) as (parsed, source):
        refuse_inputs(base.list_inputs(parsed, source, options.folders))
        check_output(options.out / "tuning.json")  # before hours of search
        for report, files in run_tuning(parsed, source, options):
            target = _markdown_target(markdown, files, options.out)
            _print_report(report, files, datasets, as_json=json, markdown=target)
            verdicts.append(report.verdict)
    if {"unjudged decide", "groups decide"}.intersection(verdicts):
        raise typer.Exit(ExitCode.INCONCLUSIVE)


def _markdown_target(markdown: Path | None, files: Sequence[Path], out: Path) -> Path | None:
    """The Markdown file of one report; that of one of several datasets has its name before it."""
    is_file = markdown is not None and markdown != base.STDOUT
    if markdown is None or not is_file or files[0].parent == out:
        return markdown
    return markdown.with_name(f"{files[0].parent.name}-{markdown.name}")


def _print_report(
    report: TuningReport,
    files: list[Path],
    datasets: list[Path] | None,
    *,
    as_json: bool,
    markdown: Path | None,
) -> None:
    """Print a report and what to do next.

    Raises:
        Exit: The search was interrupted.
    """
    from fusion_bench.cli.application.next_steps import after_tune
    from fusion_bench.report.tuning_page import build_page

    steps = tuple(after_tune(report, files, datasets))
    tuned = next((str(file) for file in files if file.name == "tuned.yaml"), "tuned.yaml")
    page = replace(build_page(report, tuned=tuned), next_steps=steps)
    print_result(report, page, as_json=as_json, written=files, markdown=markdown)
    if report.interrupted:
        raise typer.Exit(ExitCode.INTERRUPTED)
