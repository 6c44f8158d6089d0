"""Write a system as the configuration of a search engine or library."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING

import typer

import fusion_bench.cli.application.commands as base
from fusion_bench.cli.application import console
from fusion_bench.cli.application.exit_codes import ExitCode
from fusion_bench.config.options import Folder
from fusion_bench.engines.options import ExportOptions

if TYPE_CHECKING:
    from fusion_bench.evaluation.export_records import ExportReport


class ExportCommand(ExportOptions, base.ExperimentOptions):
    """Options of ``export``.

    Attributes:
        out: Write the files into this folder.
    """

    out: Folder | None = None


@base.single_command()
def command(options: ExportCommand) -> None:
    """Write a system as the configuration of a search engine or library.

    Prints how well the engine can do what the system does: exact, rank-equivalent, approximate or
    unsupported, and why. Replays an approximate export on the dataset, and prints the cost in the
    primary measure.

    Without --out the configuration goes to standard output, and through a pipe nothing else does.
    Unsupported ends with exit code 2.

    Examples:
        fusion-bench export reports/mine/tuning/tuned.yaml --to elasticsearch
        fusion-bench export experiments/mine.yaml --to opensearch --system rrf > pipeline.json
        fusion-bench export experiments/mine.yaml --to langchain --system rrf --out search
        fusion-bench export experiments/mine.yaml --to qdrant --system rrf --replay --json
    """
    from fusion_bench.engines.export import export_experiment
    from fusion_bench.experiment.dialect import find_engine
    from fusion_bench.report.export_page import build_export_page

    find_engine(options.engine, where="--to")
    if options.query_type is not None:
        base.refuse(options, "a system has numbers by one of them", "intent")
    report = options.run(export_experiment, options)
    if report.fidelity == "unsupported":
        _refuse(report, as_json=options.json)
    written = [] if options.out is None else report.write(options.out, force=True)  # it decides
    if options.json or options.out is not None:
        console.print_result(report, build_export_page(report), options, written)
        return
    _print_raw(report)


def _refuse(report: ExportReport, *, as_json: bool) -> None:
    """Say why nothing can be written, and end."""
    if as_json:
        console.print_json(report)
    else:
        decisive, *others = report.reasons
        reasons = decisive + (f" (also lost: {'; '.join(others)})" if others else "")
        console.echo_error(
            f"system {report.system!r} cannot be written for {report.title}: {reasons}"
        )
    raise typer.Exit(ExitCode.FAILED)


def _print_raw(report: ExportReport) -> None:
    """The files on standard output; the page above them, or on standard error beside a pipe."""
    from rich.console import Console

    from fusion_bench.report.export_page import build_export_page
    from fusion_bench.report.terminal import print_page

    is_terminal = sys.stdout.isatty()
    terminal = console.make_console() if is_terminal else Console(stderr=True, highlight=False)
    print_page(build_export_page(report), terminal)
    if is_terminal:
        typer.echo()
    print_files(report.files, as_they_are=not is_terminal)


def print_files(files: Mapping[str, str], *, as_they_are: bool) -> None:
    """Print files; where there are several, each below its name.

    Args:
        files: Name → text.
        as_they_are: Otherwise without characters that control a terminal.
    """
    for n, (name, text) in enumerate(files.items()):
        if n:
            typer.echo()
        if len(files) > 1:
            console.echo(f"==> {name} <==")
        if as_they_are:
            typer.echo(text, nl=False)
            continue
        for line in text.splitlines():
            console.echo(line)
