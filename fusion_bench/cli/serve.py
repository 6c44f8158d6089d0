"""Change parameters by sliders and watch the measures on the tuning queries."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import fusion_bench.cli.application.commands as base
from fusion_bench.config.options import Name, Option

if TYPE_CHECKING:
    from socket import socket

    from fusion_bench.serving.console.session import ConsoleSession


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

    Sliders change the parameters of a system. The page shows its measures on the tuning queries.

    Examples:
        fusion-bench serve experiments/default.yaml
        fusion-bench serve experiments/mine.yaml --system rrf-v2 --port 8765
        fusion-bench serve experiments/mine.yaml --no-open --json
    """
    import json as json_format
    from dataclasses import replace

    from fusion_bench.checks.dataset_facts import describe_selection
    from fusion_bench.cli.application.progress import end_lines
    from fusion_bench.serving.console.experiment_files import open_session
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


def require_packages() -> None:
    """Refuse before anything is read where the server's packages are not there.

    Raises:
        MissingExtraError: Names the extra.
    """
    from fusion_bench.util.optional_imports import import_optional

    for package in ("starlette", "uvicorn"):
        import_optional(package, extra="serve", purpose="fusion-bench serve")


def serve_session(
    session: ConsoleSession,
    listener: socket,
    *,
    reports: Path,
    announce: Callable[[str], None],
    open_browser: bool,
) -> None:
    """Serve until Ctrl-C or SIGTERM, which end the command as they end every other.

    Args:
        session: What is served.
        listener: A listening socket on 127.0.0.1.
        reports: Folder of reports, for a ledger that cannot stand beside the dataset.
        announce: Called with the address, once it answers.
        open_browser: Whether to open it in a browser.
    """
    import threading
    import webbrowser

    from fusion_bench.serving.console.application import create_application
    from fusion_bench.util.loopback import Access, run_application

    access = Access(listener.getsockname()[1])
    application = create_application(session, access, reports)
    announce(access.address)
    if open_browser:
        address = access.make_single_use_address()
        threading.Thread(target=webbrowser.open, args=(address,), daemon=True).start()
    run_application(application, listener)
