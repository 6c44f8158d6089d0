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
    parameters = {}
    for key, field in model.model_fields.items():
        if key == "method":
            continue
        value = field.get_default(call_default_factory=True)
        if value is PydanticUndefined:
            parameters[key] = "required"
        elif isinstance(value, StrictModel):
            stated = json.dumps(value.model_dump(exclude_defaults=True))
            parameters[key] = str(value.model_dump().get("method", stated))
        else:
            parameters[key] = json.dumps(value)
    return MethodEntry(
        method=name,
        formula=str(getattr(model, "formula", "") or sentence),
        source=str(getattr(model, "source", "")),
        parameters=parameters,
    )


def list_alias_notes(data: Mapping[str, Any]) -> tuple[str, ...]:
    """One line for each alias: ``mrr@10 → RR@10``.

    Args:
        data: A valid experiment as YAML says it.
    """
    systems = data.get("systems")
    notes = (describe_fusion_alias(given) for given in _find_fusions(systems))
    fusion_notes = dict.fromkeys(note for note in notes if note is not None)
    tune, gate = data.get("tune") or {}, data.get("gate") or {}
    measures = [*(data.get("measures") or ())]
    if tune.get("measure") is not None:
        measures.append(tune["measure"])
    measures += gate.get("checks", gate)  # the short form is the checks alone
    measures += [guard["measure"] for guard in gate.get("guards") or ()]
    return (*list_renamed(measures), *fusion_notes)


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
    meant = [str(alias["method"])]
    for key, value in parameters.items():
        meant.append(f"{key} {value.get('method') if isinstance(value, Mapping) else value}")
    remark = " (divides by Σ w: the same order)" if parameters else ""
    return f"{name} → {', '.join(meant)}{remark}"


def _find_fusions(data: object) -> Iterator[object]:
    """Every fusion, at any depth."""
    if not isinstance(data, Mapping):
        return
    for key, value in data.items():
        if key != "fusion":
            yield from _find_fusions(value)
        else:
            yield from value if isinstance(value, list) else [value]
