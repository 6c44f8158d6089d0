"""Compare fusion variants and rerank blends on judged queries."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer

from fusion_bench.cli._app import (
    DatasetFolders,
    JsonFlag,
    command_app,
    console,
    examples,
    folders_for,
    v2_enabled,
)

__all__ = ["command", "evaluate"]


command = command_app()


@command.command(
    "eval",
    epilog=examples(
        "fusion-bench eval experiments/default.yaml",
        "fusion-bench eval experiments/mine.yaml --split dev --out look",
        "fusion-bench eval --split dev --no-plots --json",
        "fusion-bench eval --verbose --no-plots",
    ),
)
def evaluate(
    experiment: Annotated[
        Path, typer.Argument(help="The experiment's YAML file.", metavar="EXPERIMENT")
    ] = Path("experiments/default.yaml"),
    out: Annotated[
        Path | None,
        typer.Option(
            help="Folder for the report. Default: reports/EXPERIMENT.", show_default=False
        ),
    ] = None,
    datasets: DatasetFolders = None,
    split: Annotated[
        str | None,
        typer.Option(
            help="Evaluate this split, or 'all'. Default: 'test' where there is one.",
            metavar="NAME",
        ),
    ] = None,
    query_type: Annotated[
        str | None, typer.Option(help="Evaluate only queries of this type.", metavar="NAME")
    ] = None,
    plots: Annotated[bool, typer.Option(help="Draw the PNG plots.")] = True,
    verbose: Annotated[
        bool,
        typer.Option(
            "--verbose",
            help="Say for each system whether the fast engine counts its values or why it must "
            "be ranked; the report is the same.",
        ),
    ] = False,
    cache: Annotated[
        bool, typer.Option(help="Keep what is read beside the dataset, for the next time.")
    ] = True,
    json: JsonFlag = False,
) -> None:
    """Compare fusion variants and rerank blends on judged queries.

    Prints one table per dataset and writes report.json, report.md and plots.
    """
    from fusion_bench.cli._progress import progress_bar
    from fusion_bench.experiment import read_experiment
    from fusion_bench.report.terminal import render
    from fusion_bench.report.write import write
    from fusion_bench.run import run

    parsed, source = read_experiment(experiment)
    folder = out or Path("reports") / experiment.stem
    _require_folder(folder)
    paths: list[tuple[str, Mapping[str, str]]] = []
    with progress_bar() as progress:
        report = run(
            parsed,
            source,
            folders=folders_for(datasets, experiment),
            split=split,
            query_type=query_type,
            v2_enabled=v2_enabled(),
            cache=cache,
            progress=progress,
            told=(lambda name, found: paths.append((name, found))) if verbose else None,
        )
        progress("writing the report", 1, 1)
        written = write(report, folder, plots=plots)
    for name, found in paths:
        for system, path in found.items():
            typer.echo(f"{name}: {system}: {path}", err=True)
    if json:
        typer.echo(report.model_dump_json())
        return
    render(report, console())
    typer.echo("Written: " + ", ".join(str(path) for path in written))


def _require_folder(folder: Path) -> None:
    """Refuse a place where no report can be written before the work begins."""
    for path in (folder, *folder.parents):
        if path.exists() and not path.is_dir():
            from fusion_bench.errors import ConfigError

            raise ConfigError(f"--out {folder}: {path} is a file: name a folder")
