"""The engines that lists are pulled from, with the keys of each, from the registered models."""

from __future__ import annotations

import json
from typing import TypedDict, get_args

from pydantic_core import PydanticUndefined

from fusion_bench.config.models import StrictModel
from fusion_bench.connector import Connector, LegSettings, connectors


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
            leg=_list_defaults(_find_leg(model), LegSettings),
            fuses=model.model_fields["fused"].annotation is not type(None),
        )
        for name, model in connectors.load_all().items()
    ]


def list_shared_keys() -> tuple[dict[str, str], dict[str, str]]:
    """Default of each key that every engine has, and of each key that every leg has."""
    return _list_defaults(Connector, None), _list_defaults(LegSettings, None)


def _find_leg(model: type[Connector]) -> type[LegSettings]:
    """The model of an engine's legs."""
    leg = get_args(model.model_fields["legs"].annotation)[1]
    return leg if isinstance(leg, type) and issubclass(leg, LegSettings) else LegSettings


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
