"""Pull ranked lists from a live engine into a dataset."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated

import typer

import fusion_bench.cli.application.commands as base
from fusion_bench.cli.application.console import echo, echo_written, print_json, print_tables
from fusion_bench.cli.application.exit_codes import ExitCode
from fusion_bench.config.models import MOST_WORKERS, Location, parse_model
from fusion_bench.config.options import Argument, Changes, File, Option
from fusion_bench.engines.options import PullOptions
from fusion_bench.errors import ConfigError
from fusion_bench.util.formatting import pluralize

if TYPE_CHECKING:
    from fusion_bench.engines.connectors import Connector


class PullCommand(PullOptions, base.JsonOptions, base.PluginOptions):
    """Options of ``pull``.

    Attributes:
        engine: The engine, such as elasticsearch, qdrant, pgvector, http or python. 'fusion-bench
            methods' lists all of them with their keys.
        queries: JSON Lines: {"id": …, "text": …} a query.
        config: YAML with the engine's keys: its place, legs, fused.
        change: Set a key of the engine, such as url=http://…, legs.bm25.field=body; repeatable.
        concurrency: Most calls at once.
        requests_per_minute: Most calls per minute, evenly spaced.
    """

    engine: Annotated[str, Argument("ENGINE")]
    queries: File
    config: File | None = None
    change: Changes = ()
    concurrency: Annotated[int, Option(min=1, max=MOST_WORKERS)] | None = None
    requests_per_minute: Annotated[float, Option(min=0.01)] | None = None


@base.single_command(ExitCode.DEGRADED)
def command(options: PullCommand) -> None:
    """Pull each leg of a hybrid search alone, and the engine's own fused answer, as a dataset.

    API keys come from environment variables. Run the same command again to resume a pull that was
    interrupted; no answer is asked for twice.

    Examples:
        fusion-bench pull qdrant --queries queries.jsonl --out datasets/mine --config pull.yaml
        fusion-bench pull elasticsearch --queries queries.jsonl --out datasets/mine --config
            pull.yaml --depth 200 --texts
        fusion-bench pull python --queries queries.jsonl --out datasets/mine --set
            legs.mine.function=my_search:search
    """
    from fusion_bench.cli.application.progress import progress_bar
    from fusion_bench.engines.pull import pull_dataset

    limits = {name: getattr(options, name) for name in ("concurrency", "requests_per_minute")}
    set_limits = [f"{key}={value}" for key, value in limits.items() if value is not None]
    connector = _read_connector(options.engine, options.config, [*options.change, *set_limits])
    with progress_bar() as show:
        pulled = pull_dataset(connector, options.queries, options, show)
    if options.json:
        print_json({"folder": pulled.folder, **pulled.record.model_dump(), "notes": pulled.notes})
    else:
        record = pulled.record
        stored = record.queries * len(record.lists) - record.asked
        known = f", {stored:,} stored before" if stored > 0 else ""
        queries, answers = pluralize(record.queries, "query"), pluralize(record.asked, "answer")
        echo(f"{record.engine}: {queries}, {answers}{known}")
        from fusion_bench.report.page import make_record_table

        records = [
            {
                "list": each.name,
                "depth": each.depth,
                "hits": each.hits,
                "empty": each.empty,
                "retries": each.retries,
                **{f"{key}, ms": round(value, 1) for key, value in each.latency_ms.items()},
            }
            for each in pulled.record.lists
        ]
        print_tables(make_record_table("Lists, and the time of a call", records))
        for notice in pulled.notes:
            echo(f"note: {notice}")
        echo_written(pulled.files)
        folder = quote(str(pulled.folder))
        echo(f"Next: fusion-bench judge {folder}, then fusion-bench eval {folder}/experiment.yaml")
    if pulled.record.is_degraded:
        raise typer.Exit(ExitCode.DEGRADED)


def _read_connector(engine: str, config: Path | None, changes: Sequence[str]) -> Connector:
    """The connector of an engine.

    Args:
        engine: Its name, or ``package.module:Class`` of an installed distribution.
        config: YAML with the keys of the connector; None = only ``changes``.
        changes: ``KEY=VALUE`` each, put into the configuration.

    Raises:
        UnknownNameError: There is no such engine; lists the known ones.
        ConfigError: A key is missing or unknown, or a value breaks a rule; says where.
    """
    from fusion_bench.config.yaml_files import read_yaml
    from fusion_bench.engines.connectors import connectors
    from fusion_bench.experiment.overrides import set_options

    source = None if config is None else read_yaml(config)
    given = {} if source is None else source.data
    if not isinstance(given, Mapping):
        raise ConfigError(f"{config}: a mapping with the keys of {engine} is needed")
    data = set_options(given, changes, example="url=http://localhost:9200")
    model = connectors.find_plugin(engine)
    named = data.setdefault("method", engine)
    if named != engine:
        raise ConfigError(f"{config}: method: {named!r}, and the command has {engine!r}: keep one")

    keys = [change.partition("=")[0].strip() for change in changes]

    def locate(path: Location) -> str:
        name = ".".join(map(str, path))
        changed = name and any(f"{key}.".startswith(f"{name}.") or key == name for key in keys)
        if source is not None and not changed:
            return source.where(path)
        return f"{engine}: {name} (--config FILE, or --set {name or 'KEY'}=VALUE)"

    return parse_model(model, data, locate)
