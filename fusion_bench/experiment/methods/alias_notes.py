"""What the aliases of an experiment became: names of measures and of fusion methods."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from fusion_bench.fuse import fusions
from fusion_bench.measures.aliases import list_renamed


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
