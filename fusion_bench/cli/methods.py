"""List fusion methods, blends and normalizers."""

from __future__ import annotations

import typer

from fusion_bench.cli._base import JsonFlag, command_app, format_examples, make_console

command = command_app()


@command.command(
    epilog=format_examples(
        "fusion-bench methods", "fusion-bench methods --json | jq '.fusion[].method'"
    ),
)
def methods_command(json: JsonFlag = False) -> None:
    """List fusion methods, blends and normalizers with their parameters and defaults."""
    from fusion_bench.experiment.method_table import list_methods

    methods = list_methods()
    if json:
        import json as encoder

        typer.echo(encoder.dumps(methods, indent=2))
        return
    from rich.table import Table

    for kind, entries in methods.items():
        table = Table(title=kind, title_justify="left", show_lines=True)
        for heading in ("method", "formula", "parameters (default)", "source"):
            table.add_column(heading, overflow="fold")
        for entry in entries:
            parameters = "\n".join(
                f"{name} = {value}" for name, value in entry["parameters"].items()
            )
            table.add_row(entry["method"], entry["formula"], parameters, entry["source"])
        make_console().print(table, markup=False)
