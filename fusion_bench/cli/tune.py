"""Tune a system's parameters and test the gain on held-out queries."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import fusion_bench.cli.application.commands as base
from fusion_bench.cli.application.app import STDOUT
from fusion_bench.cli.application.console import print_result
from fusion_bench.cli.application.process import ExitCode
from fusion_bench.config.models import MOST_WORKERS
from fusion_bench.config.options import Name, Option

if TYPE_CHECKING:  # imported late, as it is slow
    from fusion_bench.report.tuning_records import TuningReport
Url = Annotated[str, Option(metavar="URL")]


class TuneOptions(base.ExperimentOptions, base.PictureOptions):
    """Options of ``tune``.

    Attributes:
        out: Folder for the report and the logs. Default: reports/EXPERIMENT/tuning.
        system: Tune this system.
        trials: How many parameter sets to try.
        timeout: Stop starting trials after this many seconds.
        sampler: tpe, cmaes, gp, qmc, random, grid or brute_force.
        seed: Seed of the search and the tests.
        folds: Folds of the nested cross-validation; 0 = none.
        workers: Processes that evaluate trials; results do not depend on it.
        storage: Database through which several machines search together, such as
            postgresql://user@host/name. Run the same command on each.
        cluster: Evaluate on a Dask cluster whose workers see the same files, such as
            tcp://host:8786; local:4 starts four processes.
        export: Copy the finished search into an Optuna storage, such as sqlite:///study.db, for
            optuna-dashboard.
    """

    out: Path | None = None
    datasets: base.Folders = ()
    overrides: base.Overrides = ()
    system: Name | None = None
    trials: int | None = None
    timeout: float | None = None
    sampler: Name | None = None
    seed: int | None = None
    folds: int | None = None
    workers: Annotated[int, Option(min=1, max=MOST_WORKERS)] = 1
    storage: Url | None = None
    cluster: Annotated[str, Option(metavar="ADDRESS")] | None = None
    export: Url | None = None


@base.single_command(ExitCode.INCONCLUSIVE)
def command(options: TuneOptions) -> None:
    """Tune a system's parameters and test the gain on held-out queries.

    An interrupted search continues from its log in the output folder.

    Examples:
        fusion-bench tune experiments/default.yaml
        fusion-bench tune experiments/mine.yaml --trials 1000 --sampler cmaes --workers 4
        fusion-bench tune experiments/mine.yaml --timeout 600 --json
        fusion-bench tune experiments/mine.yaml --markdown - --plot-format svg
        fusion-bench tune experiments/mine.yaml --storage postgresql://me@db/tuning
        fusion-bench tune experiments/mine.yaml --cluster tcp://scheduler:8786
        fusion-bench eval reports/mine/tuning/tuned.yaml
    """
    from fusion_bench.cli.application.progress import progress_bar
    from fusion_bench.io.outputs import check_output, refuse_inputs
    from fusion_bench.tune import run
    from fusion_bench.util.files import name_experiment

    keys = ("system", "trials", "timeout", "sampler", "seed", "folds")
    asked = options.call(
        run.TuneOptions,
        options.out or Path("reports") / name_experiment(options.experiment) / "tuning",
        options.folders,
        progress_bar,
        overrides={key: getattr(options, key) for key in keys},
    )
    verdicts = []
    with options.read() as (parsed, source):
        refuse_inputs(base.list_inputs(parsed, source, asked.folders))
        check_output(asked.out / "tuning.json")  # before hours of search
        for report, files in run.run_tuning(parsed, source, asked):
            _print_report(report, files, replace(options, out=asked.out))
            verdicts.append(report.verdict)
    if {"unjudged decide", "groups decide"}.intersection(verdicts):
        raise typer.Exit(ExitCode.INCONCLUSIVE)


def _print_report(report: TuningReport, files: list[Path], options: TuneOptions) -> None:
    """Print a report and what to do next.

    The Markdown file of one of several datasets has its name before it.

    Raises:
        Exit: The search was interrupted.
    """
    from fusion_bench.cli.application.next_steps import after_tune
    from fusion_bench.report.tuning_page import build_page

    markdown, folder = options.markdown, files[0].parent
    if markdown is not None and markdown != STDOUT and folder != options.out:
        options = replace(options, markdown=markdown.with_name(f"{folder.name}-{markdown.name}"))
    steps = tuple(after_tune(report, files, options.datasets))
    tuned = next((str(file) for file in files if file.name == "tuned.yaml"), "tuned.yaml")
    page = replace(build_page(report, tuned=tuned), next_steps=steps)
    print_result(report, page, options, files)
    if report.interrupted:
        raise typer.Exit(ExitCode.INTERRUPTED)
