"""The settings of an engine that is asked: put together, listed for each engine."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, TypedDict, get_args

from pydantic_core import PydanticUndefined

from fusion_bench.config.models import StrictModel, parse_model
from fusion_bench.engines.connectors import Connector, SourceSettings, connectors


def build_connector(engine: str, settings: Mapping[str, Any]) -> Connector:
    """The connector of an engine with keys as Python has them.

    Raises:
        UnknownNameError: There is no such engine; lists the known ones.
        ConfigError: A key is missing or unknown, or a value breaks a rule; says where.
    """
    model = connectors.find_plugin(engine)
    data = {"method": engine, **settings}
    return parse_model(model, data, engine)


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
    """Every engine, those that most people use first, with the keys that not every engine has."""
    return [
        ConnectorEntry(
            engine=name,
            source=model.source,
            keys=_list_defaults(model, Connector),
            leg=_list_defaults(_find_source(model), SourceSettings),
            fuses=model.model_fields["fused"].annotation is not type(None),
        )
        for name in connectors.list_names()
        for model in [connectors.find_plugin(name)]
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
