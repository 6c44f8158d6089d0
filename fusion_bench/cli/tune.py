"""Tune a system's parameters and test the gain on held-out queries."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import typer

import fusion_bench.cli.application.commands as base
from fusion_bench.cli.application.app import STDOUT
from fusion_bench.cli.application.console import print_result
from fusion_bench.cli.application.exit_codes import ExitCode
from fusion_bench.config.options import Folder
from fusion_bench.tune.options import TuneOptions
from fusion_bench.util.files import name_experiment

if TYPE_CHECKING:  # imported late, as it is slow
    pass


#: Kinds of a recommendation that leave something to do before any change can be recommended.
UNDECIDED = frozenset({"judge first", "declare groups"})


class TuneCommand(TuneOptions, base.ExperimentOptions, base.PageOptions):
    """Options of ``tune``.

    Attributes:
        out: Folder for the report and the logs. Default: reports/EXPERIMENT/tuning.
    """

    out: Folder | None = None


@base.single_command(ExitCode.INCONCLUSIVE)
def command(options: TuneCommand) -> None:
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
    from fusion_bench.cli.application.next_steps import after_tune
    from fusion_bench.cli.application.progress import progress_bar
    from fusion_bench.io.outputs import check_output, refuse_inputs
    from fusion_bench.report.tuning_page import build_page
    from fusion_bench.tune.run import run_tuning

    folders = options.folders
    out = options.out or Path("reports") / name_experiment(options.experiment) / "tuning"
    kinds = set()
    with options.read() as (parsed, source):
        refuse_inputs(base.list_inputs(parsed, source, folders))
        check_output(out / "tuning.json")  # before hours of search
        plan = partial(after_tune, datasets=options.datasets)
        for report, files in run_tuning(parsed, source, options, out, folders, progress_bar, plan):
            # The Markdown file of one of several datasets has its name before it.
            shown, markdown, folder = options, options.markdown, files[0].parent
            if markdown is not None and markdown != STDOUT and folder != out:
                named = markdown.with_name(f"{folder.name}-{markdown.name}")
                shown = replace(options, markdown=named)
            steps = tuple(after_tune(report, files, options.datasets))
            tuned = next((str(file) for file in files if file.name == "tuned.yaml"), "tuned.yaml")
            page = replace(build_page(report, tuned=tuned), next_steps=steps)
            print_result(report, page, shown, files)
            if report.interrupted:
                raise typer.Exit(ExitCode.INTERRUPTED)
            kinds.add(report.advice.kind)
    if not kinds.isdisjoint(UNDECIDED):
        raise typer.Exit(ExitCode.INCONCLUSIVE)
