"""Move the numbers of a system by sliders, and see its measures on the tuning queries."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import fusion_bench.cli.application.commands as base
from fusion_bench.config.options import Name, Option


class ServeOptions(base.ExperimentOptions):
    """Options of ``serve``.

    Attributes:
        dataset: Dataset, if the experiment has several.
        system: System to start with. Default: the tuned one, the gated one, or the baseline.
        port: Port on 127.0.0.1; 0 = any free one.
        open_browser: Open the page in a browser.
    """

    dataset: Name | None = None
    system: Name | None = None
    port: Annotated[int, Option(min=0, max=65535)] = 0
    open_browser: Annotated[bool, Option("--open/--no-open")] = True


@base.single_command()
def command(options: ServeOptions) -> None:
    """Serve the mixing console on 127.0.0.1 until Ctrl-C.

    Sliders move the numbers of a system. The page shows its measures on the tuning queries.

    Examples:
        fusion-bench serve experiments/default.yaml
        fusion-bench serve experiments/mine.yaml --system rrf-v2 --port 8765
        fusion-bench serve experiments/mine.yaml --no-open --json
    """
    import json as json_format
    from dataclasses import replace

    from fusion_bench.checks.dataset_facts import describe_selection
    from fusion_bench.cli.application.progress import end_lines
    from fusion_bench.console.experiment_files import open_session
    from fusion_bench.console.server import require_packages, serve_session
    from fusion_bench.util.loopback import open_socket

    def announce(address: str) -> None:
        end_lines()
        if options.json:
            typer.echo(json_format.dumps({"address": address, "warnings": session.judge_warnings}))
            return
        typer.echo(f"Console of {options.experiment}: {address}")
        typer.echo("The address holds a key: do not pass it on. Ctrl-C ends the console.")

    require_packages()
    with open_socket(options.port) as listener, options.read() as (parsed, source):
        session = options.call(open_session, parsed, source, folders=options.folders)
        base.echo_notes(() if options.json else session.judge_warnings)
        if (shown := describe_selection(session.dataset)) is not None:
            base.echo_notes([f"the console shows {shown}"])
        serve_session(
            replace(session, folders=tuple(options.datasets)),
            listener,
            reports=Path("reports"),
            announce=announce,
            open_browser=options.open_browser,
        )
