"""The table of methods that ``method:`` accepts, from the registered models."""

from __future__ import annotations

import json
from typing import Any, TypedDict

from pydantic_core import PydanticUndefined

from fusion_bench.blend import blends
from fusion_bench.config.models import StrictModel
from fusion_bench.config.registry import MethodRegistry
from fusion_bench.fuse import fusions
from fusion_bench.normalize import normalizers
from fusion_bench.policies import policies


class MethodEntry(TypedDict):
    """One method.

    Attributes:
        method: Its name.
        formula: What it computes, in one line.
        source: Where the formula comes from.
        parameters: Each parameter's default as JSON, ``required`` where it has none.
    """

    method: str
    formula: str
    source: str
    parameters: dict[str, str]


def list_methods() -> dict[str, list[MethodEntry]]:
    """Every fusion method, blend, normalizer and policy, by kind."""
    registries: dict[str, MethodRegistry[Any]] = {
        "fusion": fusions,
        "blend": blends,
        "normalize": normalizers,
        "policy": policies,
    }
    return {
        kind: [describe_method(name, model) for name, model in registry.load_all().items()]
        for kind, registry in registries.items()
    }


def list_aliases() -> dict[str, dict[str, str]]:
    """Other name of a fusion method → the method and the parameters that it stands for."""
    return {
        name: {key: str(value) for key, value in meant.items()}
        for name, meant in sorted(fusions.aliases.items())
    }


def describe_method(name: str, model: type[StrictModel]) -> MethodEntry:
    """The entry of a method; without a formula, its docstring's first sentence after the name."""
    first = (model.__doc__ or "").split("\n\n")[0]
    sentence = " ".join(first.split(": ", 1)[-1].split()).rstrip(".")
    return MethodEntry(
        method=name,
        formula=str(getattr(model, "formula", "") or sentence),
        source=str(getattr(model, "source", "")),
        parameters={
            key: _format_default(model, key) for key in model.model_fields if key != "method"
        },
    )


def _format_default(model: type[StrictModel], key: str) -> str:
    value = model.model_fields[key].get_default(call_default_factory=True)
    if value is PydanticUndefined:
        return "required"
    if isinstance(value, StrictModel):
        data = value.model_dump()
        return str(data.get("method", json.dumps(value.model_dump(exclude_defaults=True))))
    return json.dumps(value)
