"""List fusion methods, blends and normalizers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import fusion_bench.cli._base as base
from fusion_bench.cli._console import print_json, print_tables

if TYPE_CHECKING:
    from fusion_bench.report.page import Table

command = base.command_app()


@command.command(
    epilog=base.format_examples(
        "fusion-bench methods", "fusion-bench methods --json | jq '.fusion[].method'"
    ),
)
def methods_command(json: base.JsonFlag = False) -> None:
    """List fusion methods, blends and normalizers with their parameters and defaults."""
    from fusion_bench.experiment.methods.method_table import list_aliases, list_methods

    methods, aliases = list_methods(), list_aliases()
    if json:
        print_json({**methods, "aliases": aliases})
        return
    tables = (build_method_table(kind, entries) for kind, entries in methods.items())
    print_tables(*tables, build_alias_table(aliases))


def build_method_table(kind: str, entries: Iterable[Mapping[str, Any]]) -> Table:
    """A row a method: formula, parameters with their defaults, and source."""
    from fusion_bench.report.page import Column, Row, Table

    names = ("method", "formula", "parameters (default)", "source")
    rows = []
    for entry in entries:
        parameters = ", ".join(f"{name} = {value}" for name, value in entry["parameters"].items())
        rows.append(Row((entry["method"], entry["formula"], parameters, entry["source"])))
    return Table(kind, tuple(Column(name, is_text=True) for name in names), tuple(rows))


def build_alias_table(aliases: Mapping[str, Mapping[str, str]]) -> Table:
    """A row an alias: the method and the parameters that it stands for."""
    from fusion_bench.report.page import Column, Row, Table

    rows = (
        Row((name, ", ".join(f"{key}: {value}" for key, value in meant.items())))
        for name, meant in aliases.items()
    )
    columns = (Column("alias", is_text=True), Column("stands for", is_text=True))
    return Table("other names of fusion methods", columns, tuple(rows))
