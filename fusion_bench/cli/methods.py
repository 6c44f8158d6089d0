"""List fusion methods, blends, normalizers, policies, and the engines that `pull` asks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import fusion_bench.cli.application.app as base
from fusion_bench.cli.application.console import print_json, print_tables

if TYPE_CHECKING:
    from fusion_bench.engines.engine_settings import ConnectorEntry
    from fusion_bench.report.page import Table

command = base.command_app()


@command.command(
    epilog=base.format_examples(
        "fusion-bench methods", "fusion-bench methods --json | jq '.fusion[].method'"
    ),
)
def methods_command(json: base.JsonFlag = False) -> None:
    """List fusion methods, blends, normalizers and policies with their parameters and defaults.

    Also lists the engines that pull asks, with the keys of their configuration.
    """
    from fusion_bench.engines.engine_settings import list_connectors
    from fusion_bench.experiment.method_table import list_aliases, list_methods

    methods, aliases, engines = list_methods(), list_aliases(), list_connectors()
    if json:
        print_json({**methods, "aliases": aliases, "connector": engines})
        return
    tables = (build_method_table(kind, entries) for kind, entries in methods.items())
    print_tables(*tables, build_alias_table(aliases), build_connector_table(engines))


def build_connector_table(engines: Iterable[ConnectorEntry]) -> Table:
    """A row an engine: its keys and those of a leg with their defaults; first what all share."""
    from fusion_bench.engines.engine_settings import list_shared_keys
    from fusion_bench.report.page import Column, Row, Table

    columns = ("engine", "keys (default)", "keys of a leg (default)", "fused")
    shared, shared_leg = list_shared_keys()
    rows = [Row(("every engine", _join_defaults(shared), _join_defaults(shared_leg), ""))]
    for engine in engines:
        fuses = "yes" if engine["fuses"] else "no"
        keys, leg = _join_defaults(engine["keys"]), _join_defaults(engine["leg"])
        rows.append(Row((engine["engine"], keys, leg, fuses)))
    title = "engines of pull"
    return Table(title, tuple(Column(name, is_text=True) for name in columns), tuple(rows))


def _join_defaults(defaults: Mapping[str, str]) -> str:
    return ", ".join(f"{name} = {value}" for name, value in defaults.items())


def build_method_table(kind: str, entries: Iterable[Mapping[str, Any]]) -> Table:
    """A row a method: formula, parameters with their defaults, and source."""
    from fusion_bench.report.page import Column, Row, Table

    names = ("method", "formula", "parameters (default)", "source")
    rows = []
    for entry in entries:
        parameters = _join_defaults(entry["parameters"])
        rows.append(Row((entry["method"], entry["formula"], parameters, entry["source"])))
    return Table(kind, tuple(Column(name, is_text=True) for name in names), tuple(rows))


def build_alias_table(aliases: Mapping[str, Mapping[str, str]]) -> Table:
    """A row an alias: the method and the parameters that it stands for."""
    from fusion_bench.report.page import Column, Row, Table

    rows = (
        Row((name, ", ".join(f"{key}: {value}" for key, value in meant.items())))
        for name, meant in aliases.items()
    )
    columns: tuple[Column[object], ...] = (
        Column("alias", is_text=True),
        Column("stands for", is_text=True),
    )
    return Table("other names of fusion methods", columns, tuple(rows))
