"""List fusion methods, blends and normalizers."""

from __future__ import annotations

import fusion_bench.cli._base as base
from fusion_bench.cli._console import echo_table, print_json

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
    for kind, entries in methods.items():
        rows = []
        for entry in entries:
            parameters = ", ".join(
                f"{name} = {value}" for name, value in entry["parameters"].items()
            )
            rows.append((entry["method"], entry["formula"], parameters, entry["source"]))
        echo_table(HEADINGS, rows, title=kind)
