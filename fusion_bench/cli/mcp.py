"""Serve the bench as tools to agents (Model Context Protocol)."""

from __future__ import annotations

import json as json_format
import os
from pathlib import Path
from typing import Annotated

import typer

import fusion_bench.cli.application.commands as base
from fusion_bench.config.options import File, Folder, Option


class McpOptions(base.JsonOptions):
    """Options of ``mcp``.

    Attributes:
        experiment: Experiment of tools that name none.
        campaign: Folder of the campaign that may be asked, or the address of a served one.
        out: Folder that tools may write to. Default: they write nothing.
        root: Folder of the project. Default: the working directory.
        http: Port on 127.0.0.1 for streamable HTTP; 0 = any free one. Default: standard input and
            output.
    """

    experiment: File | None = None
    campaign: Annotated[str, Option(metavar="CAMPAIGN")] | None = None
    out: Folder | None = None
    root: Folder = Path()
    http: Annotated[int, Option(metavar="PORT", min=0, max=65535)] | None = None


@base.single_command()
def command(options: McpOptions) -> None:
    """Serve the bench to agents as tools of the Model Context Protocol (MCP).

    A client starts it and talks to it on standard input and output, or to --http with a token.
    Tools read files of the project alone, and write only below --out.

    Examples:
        fusion-bench mcp --experiment experiments/mine.yaml
        fusion-bench mcp --campaign reports/campaigns/mine --out exported
        fusion-bench mcp --root ~/search --http 8766
    """
    from fusion_bench.util.optional_imports import import_optional

    for package in ("mcp", "uvicorn"):
        import_optional(package, extra="mcp", purpose="fusion-bench mcp")
    from fusion_bench.cli.application.progress import end_lines
    from fusion_bench.serving.mcp.project import Project
    from fusion_bench.serving.mcp.server import serve

    def announce(address: str, token: str | None) -> None:
        if options.json:
            typer.echo(json_format.dumps({"address": address, "token": token}))
            return
        typer.echo(f"MCP server: {address}", err=True)
        if token is not None:
            typer.echo(f"Token, shown once: {token}", err=True)

    end_lines()
    os.environ["FUSION_BENCH_CACHE"] = "0"  # a cache beside a dataset would be written
    serve(options.call(Project.open, options.root), options.http, announce)
