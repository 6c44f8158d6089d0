"""List fusion methods, blends and normalizers."""

from __future__ import annotations

import fusion_bench.cli._base as base
from fusion_bench.cli._console import print_json

HEADINGS = ("method", "formula", "parameters (default)", "source")

command = base.command_app()


@command.command(
    epilog=base.format_examples(
        "fusion-bench methods", "fusion-bench methods --json | jq '.fusion[].method'"
    ),
)
def methods_command(json: base.JsonFlag = False) -> None:
    """List fusion methods, blends and normalizers with their parameters and defaults."""
    from fusion_bench.experiment.method_table import list_methods

    methods = list_methods()
    if json:
        print_json(methods)
        return
    from rich.table import Table

    for kind, entries in methods.items():
        table = Table(*HEADINGS, title=kind, title_justify="left", show_lines=True)
        for column in table.columns:
            column.overflow = "fold"
        for entry in entries:
            parameters = (f"{name} = {value}" for name, value in entry["parameters"].items())
            table.add_row(entry["method"], entry["formula"], "\n".join(parameters), entry["source"])
        base.make_console().print(table, markup=False)
