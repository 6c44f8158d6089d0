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
    """List the engines by name, with the keys that not every engine has."""
    return [
        ConnectorEntry(
            engine=name,
            source=model.source,
            keys=_list_defaults(model, Connector),
            leg=_list_defaults(get_args(model.model_fields["legs"].annotation)[1], SourceSettings),
            fuses=model.model_fields["fused"].annotation is not type(None),
        )
        for name, model in connectors.load_all().items()
    ]


def list_shared_keys() -> tuple[dict[str, str], dict[str, str]]:
    """Default of each key that every engine has, and of each key that every source has."""
    return _list_defaults(Connector, None), _list_defaults(SourceSettings, None)


def _list_defaults(model: type[StrictModel], base: type[StrictModel] | None) -> dict[str, str]:
    """Defaults of the fields that a base does not have."""
    defaults = {}
    for key, field in model.model_fields.items():
        if key == "method" or (base is not None and key in base.model_fields):
            continue
        value = field.get_default(call_default_factory=True)
        value = value.model_dump(mode="json") if isinstance(value, StrictModel) else value
        defaults[key] = "required" if value is PydanticUndefined else json.dumps(value)
    return defaults
