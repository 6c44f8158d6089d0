"""The table of methods that ``method:`` accepts, with what their aliases stand for."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, TypedDict

from pydantic_core import PydanticUndefined

from fusion_bench.config.models import StrictModel
from fusion_bench.config.registry import MethodRegistry
from fusion_bench.measures.aliases import list_renamed
from fusion_bench.methods.blend import blends
from fusion_bench.methods.fuse import fusions
from fusion_bench.methods.normalize import normalizers


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
    """Every fusion method, blend and normalizer, by kind: first what most people use."""
    registries: dict[str, MethodRegistry[Any]] = {
        "fusion": fusions,
        "blend": blends,
        "normalize": normalizers,
    }
    return {
        kind: [
            describe_method(name, registry.find_plugin(name))
            for name in dict.fromkeys((*registry.list_names(), *registry.list_file_methods()))
        ]
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


def list_alias_notes(data: Mapping[str, Any]) -> tuple[str, ...]:
    """One line for each alias: ``mrr@10 → RR@10``.

    Args:
        data: A valid experiment as YAML says it.
    """
    systems = data.get("systems")
    notes = (describe_fusion_alias(given) for given in _find_fusions(systems))
    fusion_notes = dict.fromkeys(note for note in notes if note is not None)
    return (*list_renamed(_find_measures(data)), *fusion_notes)


def describe_fusion_alias(given: object) -> str | None:
    """What an alias became: ``convex → weighted_score, normalize min_max, missing zero``.

    Args:
        given: A name, or a mapping with ``method``.

    Returns:
        None where it is no alias.
    """
    options: Mapping[Any, Any] = given if isinstance(given, Mapping) else {"method": given}
    name = options.get("method")
    alias = fusions.find_alias(name) if isinstance(name, str) else None
    if alias is None:
        return None
    parameters = {key: options.get(key, value) for key, value in alias.items() if key != "method"}
    described = (f"{key} {_name_of(value)}" for key, value in parameters.items())
    meant = [str(alias["method"]), *described]
    remark = " (divides by Σ w: the same order)" if parameters else ""
    return f"{name} → {', '.join(meant)}{remark}"


def _name_of(value: object) -> object:
    return value.get("method") if isinstance(value, Mapping) else value


def _find_measures(data: Mapping[str, Any]) -> Iterator[str]:
    """Every measure that an experiment names."""
    yield from data.get("measures") or ()
    tune, gate = data.get("tune") or {}, data.get("gate") or {}
    if tune.get("measure") is not None:
        yield tune["measure"]
    yield from gate.get("checks", gate)  # the short form is the checks alone
    yield from (guard["measure"] for guard in gate.get("guards") or ())


def _find_fusions(data: object) -> Iterator[object]:
    """Every fusion, at any depth."""
    if not isinstance(data, Mapping):
        return
    for key, value in data.items():
        if key != "fusion":
            yield from _find_fusions(value)
        else:
            yield from value if isinstance(value, list) else [value]
