"""Move the numbers of a system by sliders, and see its measures on the tuning queries."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import fusion_bench.cli.application.app as base

command = base.command_app()


@command.command(
    epilog=base.format_examples(
        "fusion-bench serve experiments/default.yaml",
        "fusion-bench serve experiments/mine.yaml --system rrf-v2 --port 8765",
        "fusion-bench serve experiments/mine.yaml --no-open --json",
    ),
)
def serve(
    experiment: base.ExperimentFile = base.DEFAULT,
    dataset: Annotated[
        str | None, typer.Option(help="Dataset, if the experiment has several.", metavar="NAME")
    ] = None,
    system: Annotated[
        str | None,
        typer.Option(
            help="System to start with. Default: the tuned one, the gated one, or the baseline.",
            metavar="NAME",
        ),
    ] = None,
    port: Annotated[
        int, typer.Option(help="Port on 127.0.0.1; 0 = any free one.", min=0, max=65535)
    ] = 0,
    open_browser: Annotated[
        bool, typer.Option("--open/--no-open", help="Open the page in a browser.")
    ] = True,
    datasets: base.DatasetFolders = None,
    overrides: base.SetOption = None,
    json: base.JsonFlag = False,
) -> None:
    """Serve the mixing console on 127.0.0.1 until Ctrl-C.

    Sliders move the numbers of a system. The page shows its measures on the tuning queries.
    """
    import json as json_format
    from dataclasses import replace

    from fusion_bench.checks.dataset_facts import describe_selection
    from fusion_bench.cli.application.progress import end_lines
    from fusion_bench.console.experiment_files import open_session
    from fusion_bench.console.server import open_socket, require_packages, serve_session

    def announce(address: str) -> None:
        end_lines()
        if json:
            typer.echo(json_format.dumps({"address": address, "warnings": session.judge_warnings}))
            return
        typer.echo(f"Console of {experiment}: {address}")
        typer.echo("The address holds a key: do not pass it on. Ctrl-C ends the console.")

    require_packages()
    with (
        open_socket(port) as listener,
        base.open_experiment(experiment, overrides) as (parsed, source),
    ):
        session = open_session(
            parsed,
            source,
            folders=base.folders_for(datasets, experiment),
            dataset=dataset,
            system=system,
        )
        base.echo_notes(() if json else session.judge_warnings)
        if (shown := describe_selection(session.dataset)) is not None:
            base.echo_notes([f"the console shows {shown}"])
        serve_session(
            replace(session, folders=tuple(datasets or ())),
            listener,
            reports=Path("reports"),
            announce=announce,
            open_browser=open_browser,
        )
