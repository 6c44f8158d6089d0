"""The configuration of the engine that is asked: a YAML file, and keys set on the command line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from fusion_bench.config.files.yaml_source import read_yaml
from fusion_bench.config.models import Location, parse_model
from fusion_bench.connector import Connector, connectors
from fusion_bench.errors import ConfigError
from fusion_bench.experiment.method_options import set_options

EXAMPLE = "url=http://localhost:9200"


def read_connector(engine: str, config: Path | None, changes: Sequence[str] = ()) -> Connector:
    """The connector of an engine.

    Args:
        engine: Its name, or ``package.module:Class`` of an installed distribution.
        config: YAML with the keys of the connector; None = only ``changes``.
        changes: ``KEY=VALUE`` each, put into the configuration.

    Raises:
        UnknownNameError: There is no such engine; lists the known ones.
        ConfigError: A key is missing or unknown, or a value breaks a rule; says where.
    """
    source = None if config is None else read_yaml(config)
    given = {} if source is None else source.data
    if not isinstance(given, Mapping):
        raise ConfigError(f"{config}: a mapping with the keys of {engine} is needed")
    data = set_options(given, changes, example=EXAMPLE)
    model = connectors.find_plugin(engine)
    named = data.setdefault("method", engine)
    if named != engine:
        raise ConfigError(f"{config}: method: {named!r}, and the command says {engine!r}: keep one")

    def locate(path: Location) -> str:
        name = ".".join(map(str, path))
        if source is not None and not _is_changed(path, changes):
            return source.where(path)
        return f"{engine}: {name} (--config FILE, or --set {name or 'KEY'}=VALUE)"

    return parse_model(model, data, locate)


def build_connector(engine: str, settings: Mapping[str, Any]) -> Connector:
    """The connector of an engine with keys as Python has them.

    Raises:
        ConfigError: As for :func:`read_connector`.
    """
    model = connectors.find_plugin(engine)
    data = {"method": engine, **settings}
    return parse_model(model, data, lambda path: ".".join([engine, *map(str, path)]))


def _is_changed(path: Location, changes: Sequence[str]) -> bool:
    """Whether ``--set`` put a value there or below."""
    name = ".".join(map(str, path))
    keys = [change.partition("=")[0].strip() for change in changes]
    return bool(name) and any(f"{key}.".startswith(f"{name}.") or key == name for key in keys)
