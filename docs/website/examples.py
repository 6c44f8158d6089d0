"""An experiment for each method, on the built-in collection: complete, so that it can be pasted."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fusion_bench.config.models import StrictModel

#: Beside the defaults; of a method with a required parameter, a value that fits the collection.
OPTIONS: Mapping[str, Mapping[str, Any]] = {
    "by_source": {"sources": {"keyword": "min_max", "semantic": "z_score"}},
    "theoretical_min_max": {"lo": {"keyword": 0, "semantic": -1}},
    "linear": {"beta": 0.7},
    "position_aware": {"retrieval": "reciprocal_rank"},
    "overlap_rules": {"below": {"weights": {"semantic": 3}}},
}
#: What every method needs that reads a rerank list.
RERANKED: Mapping[str, Any] = {"reranker": "ltr", "depth": 50}
#: The system that a method is compared with.
BASELINE = {"runs": ["bm25", "dense"], "fusion": "rrf"}


def example_experiment(kind: str, name: str, model: type[StrictModel]) -> dict[str, Any]:
    """An experiment that compares a method with plain RRF.

    Args:
        kind: ``fusion``, ``blend`` or ``normalize``.
        name: The method.
        model: Its class.
    """
    settings = spell_out(model, {"method": name, **example_options(name, model)})
    runs = ["bm25", "dense"]
    scaled = {"method": "weighted_score", "normalize": settings, "missing": "zero"}
    systems: dict[str, dict[str, Any]] = {
        "fusion": {"runs": runs, "fusion": settings},
        "normalize": {"runs": runs, "fusion": scaled},
        "blend": {"runs": runs, "fusion": "rrf", "blend": settings},
    }
    system = systems[kind]
    if getattr(model, "needs_reranker", False):
        system["blend"] = {"method": "linear", **RERANKED, **OPTIONS["linear"]}
    label = "example" if name == BASELINE["fusion"] else name
    return {
        "dataset": "attack",
        "measures": ["nDCG@10"],
        "baseline": "plain rrf",
        "systems": {"plain rrf": BASELINE, label: systems[kind]},
    }


def example_options(name: str, model: type[StrictModel]) -> dict[str, Any]:
    """The options of a method's example, with a rerank list if the method reads one."""
    reranked = RERANKED if "reranker" in model.model_fields else {}
    return {**reranked, **OPTIONS.get(name, {})}


def spell_out(model: type[StrictModel], options: Mapping[str, Any]) -> dict[str, Any]:
    """The options and every default that says something: not empty, and not None."""
    values = model.model_validate(options).model_dump(mode="json", exclude_none=True)
    kept = {key: read_keys(value) for key, value in values.items() if value not in ({}, [])}
    return {key: options.get(key, value) for key, value in kept.items()}


def read_keys(value: Any) -> Any:  # noqa: ANN401 - of any field
    """The value with whole numbers as keys, which JSON has as text."""
    if not isinstance(value, Mapping):
        return value
    return {int(key) if str(key).isdigit() else key: read_keys(item) for key, item in value.items()}
