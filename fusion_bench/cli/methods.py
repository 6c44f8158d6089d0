"""List fusion methods, blends, normalizers and engines."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Annotated, Any

import fusion_bench.cli.application.commands as base
from fusion_bench.cli.application.console import print_json, print_tables
from fusion_bench.config.options import Argument
from fusion_bench.errors import UnknownNameError

if TYPE_CHECKING:
    from fusion_bench.engines.connectors._base import ConnectorEntry
    from fusion_bench.report.page import Table


class MethodsOptions(base.PluginOptions, base.JsonOptions):
    """Options of ``methods``.

    Attributes:
        name: Only this method or engine.
    """

    name: Annotated[str, Argument("NAME")] | None = None


@base.single_command()
def command(options: MethodsOptions) -> None:
    """List fusion methods, blends and normalizers with their parameters and defaults.

    Also lists the engines that pull asks, with the keys of their configuration, and the engines
    that export writes for.

    Examples:
        fusion-bench methods
        fusion-bench methods rrf
        fusion-bench methods mine --plugin own.py
        fusion-bench methods --json | jq '.fusion[].method'
    """
    from fusion_bench.engines.connectors._base import list_connectors
    from fusion_bench.engines.dialects import FOUNDING_DOCUMENTS
    from fusion_bench.experiment.dialect import list_dialects
    from fusion_bench.experiment.method_table import list_aliases, list_methods
    from fusion_bench.report.page import make_record_table

    methods, aliases = list_methods(), list_aliases()
    connectors, dialects = list_connectors(), list_dialects()
    if (name := options.name) is not None:
        known = {entry["method"] for entries in methods.values() for entry in entries}
        known |= {*aliases, *(each["engine"] for each in connectors)}
        known |= {each["engine"] for each in dialects}
        if name not in known:
            listed_by = "fusion-bench methods"
            raise UnknownNameError("method or engine", name, known, listed_by=listed_by)
        name = aliases.get(name, {}).get("method", name)
        methods = {k: [e for e in es if e["method"] == name] for k, es in methods.items()}
        aliases = {other: meant for other, meant in aliases.items() if meant["method"] == name}
        connectors = [each for each in connectors if each["engine"] == name]
        dialects = [each for each in dialects if each["engine"] == name]
    if options.json:
        print_json({**methods, "aliases": aliases, "connector": connectors, "dialect": dialects})
        return
    founding = [each for each in dialects if each["engine"] in FOUNDING_DOCUMENTS]
    public = [each for each in dialects if each not in founding]
    tables = [build_method_table(kind, entries) for kind, entries in methods.items() if entries]
    tables += [build_alias_table(aliases)] if aliases else []
    tables += [build_connector_table(connectors)] if connectors else []
    tables += [make_record_table("engines of export", public)] if public else []
    tables += [make_record_table("founding documents", founding)] if founding else []
    print_tables(*tables)


def build_connector_table(engines: Iterable[ConnectorEntry]) -> Table:
    """A row an engine: its keys and those of a source with their defaults; first what all share."""
    from fusion_bench.engines.connectors._base import list_shared_keys
    from fusion_bench.report.page import Column, make_table

    shared, shared_source = list_shared_keys()
    columns: tuple[Column[ConnectorEntry | None], ...] = (
        Column("engine", lambda each: each["engine"] if each else "every engine", is_text=True),
        Column(
            "keys (default)", lambda e: _join_defaults(e["keys"] if e else shared), is_text=True
        ),
        Column(
            "keys of a leg (default)",
            lambda each: _join_defaults(each["leg"] if each else shared_source),
            is_text=True,
        ),
        Column(
            "fused", lambda each: ("yes" if each["fuses"] else "no") if each else "", is_text=True
        ),
    )
    return make_table("engines of pull", columns, [None, *engines])


def _join_defaults(defaults: Mapping[str, str]) -> str:
    return ", ".join(f"{name} = {value}" for name, value in defaults.items())


def build_method_table(kind: str, entries: Iterable[Mapping[str, Any]]) -> Table:
    """A row a method: formula, parameters with their defaults, and source."""
    from fusion_bench.report.page import Column, make_table

    columns: tuple[Column[Mapping[str, Any]], ...] = (
        Column("method", lambda entry: entry["method"], is_text=True),
        Column("formula", lambda entry: entry["formula"], is_text=True),
        Column("parameters (default)", lambda e: _join_defaults(e["parameters"]), is_text=True),
        Column("source", lambda entry: entry["source"], is_text=True),
    )
    return make_table(kind, columns, entries)


def build_alias_table(aliases: Mapping[str, Mapping[str, str]]) -> Table:
    """A row an alias: the method and the parameters that it stands for."""
    from fusion_bench.report.page import make_record_table

    rows = [
        {"alias": name, "stands for": ", ".join(f"{key}: {value}" for key, value in meant.items())}
        for name, meant in aliases.items()
    ]
    return make_record_table("other names of fusion methods", rows)
