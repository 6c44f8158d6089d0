"""The settings of an engine that is asked: read from YAML, listed for each engine."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypedDict, get_args

from pydantic_core import PydanticUndefined

from fusion_bench.config.models import Location, StrictModel, parse_model
from fusion_bench.config.yaml_files import read_yaml
from fusion_bench.engines.connectors import Connector, SourceSettings, connectors
from fusion_bench.errors import ConfigError
from fusion_bench.experiment.overrides import set_options

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
    return parse_model(model, data, engine)


def _is_changed(path: Location, changes: Sequence[str]) -> bool:
    """Whether ``--set`` put a value there or below."""
    name = ".".join(map(str, path))
    keys = [change.partition("=")[0].strip() for change in changes]
    return bool(name) and any(f"{key}.".startswith(f"{name}.") or key == name for key in keys)


class ConnectorEntry(TypedDict):
    """One engine.

    Attributes:
        engine: Its name.
        source: Where its interface is described.
        keys: Default of each key of its own as JSON, ``required`` where it has none.
        leg: The same for the keys of a leg.
        fuses: Whether its own fused answer can be pulled.
    """

    engine: str
    source: str
    keys: dict[str, str]
    leg: dict[str, str]
    fuses: bool


def list_connectors() -> list[ConnectorEntry]:
    """Every engine by name, with the keys that not every engine has."""
    return [
        ConnectorEntry(
            engine=name,
            source=model.source,
            keys=_list_defaults(model, Connector),
            leg=_list_defaults(_find_source(model), SourceSettings),
            fuses=model.model_fields["fused"].annotation is not type(None),
        )
        for name, model in connectors.load_all().items()
    ]


def list_shared_keys() -> tuple[dict[str, str], dict[str, str]]:
    """Default of each key that every engine has, and of each key that every source has."""
    return _list_defaults(Connector, None), _list_defaults(SourceSettings, None)


def _find_source(model: type[Connector]) -> type[SourceSettings]:
    """The model of an engine's sources."""
    source = get_args(model.model_fields["legs"].annotation)[1]
    is_own = isinstance(source, type) and issubclass(source, SourceSettings)
    return source if is_own else SourceSettings


def _list_defaults(model: type[StrictModel], base: type[StrictModel] | None) -> dict[str, str]:
    """Defaults of the fields that a base does not have."""
    base_fields = {"method", *(() if base is None else base.model_fields)}
    return {
        key: _format_default(model, key) for key in model.model_fields if key not in base_fields
    }


def _format_default(model: type[StrictModel], key: str) -> str:
    value = model.model_fields[key].get_default(call_default_factory=True)
    if value is PydanticUndefined:
        return "required"
    return json.dumps(value.model_dump(mode="json") if isinstance(value, StrictModel) else value)
