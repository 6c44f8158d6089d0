"""Systems as Python names them: a method, a method with parameters, or a whole system."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from fusion_bench.config.models import Location, parse_model
from fusion_bench.data.final_lists import drop_final
from fusion_bench.data.run import Run
from fusion_bench.errors import ConfigError
from fusion_bench.experiment.system import System
from fusion_bench.experiment.v1_fallback import apply_switch
from fusion_bench.fuse import Fusion


@dataclass(frozen=True)
class MethodChoice:
    """A fusion method with parameters, not yet bound to runs.

    Attributes:
        method: Its name.
        parameters: Of the method, and keys of a system: ``blend``, ``depth``, ``top_k``, …
    """

    method: str
    parameters: Mapping[str, Any] = field(default_factory=dict)


#: A method's name, a run's name, ``(method, parameters)``, keys as in YAML, or a system.
SystemLike: TypeAlias = (
    str | tuple[str, Mapping[str, Any]] | MethodChoice | Fusion | System | Mapping[str, Any]
)

#: Runs by name, or their names alone.
RunNames: TypeAlias = Mapping[str, Run] | Sequence[str]
#: Keys of a system beside its name and its fusion.
SYSTEM_KEYS = frozenset(System.model_fields) - {"name", "fusion"}


def rrf(
    k: float | Mapping[str, float] = 60,
    *,
    weights: Mapping[str, float] | None = None,
    **options: Any,  # noqa: ANN401 - the models check them
) -> MethodChoice:
    """Reciprocal rank fusion: Σ w / (k + rank).

    Args:
        k: Its constant, or one by run name or role; a run that it does not name has 60.
        weights: By run name or role; 1 by default.
        options: Keys of a system: ``runs``, ``blend``, ``depth``, ``top_k``, …

    >>> rrf(10)
    MethodChoice(method='rrf', parameters={'k': 10})
    """
    given = {"k": k, **options}
    return MethodChoice("rrf", given if weights is None else {**given, "weights": dict(weights)})


def weighted(
    weights: Mapping[str, float] | None = None,
    *,
    normalize: str | Mapping[str, Any] = "min_max",
    missing: str = "zero",
    **options: Any,  # noqa: ANN401 - the models check them
) -> MethodChoice:
    """Weighted mean of normalized scores; by default the convex combination.

    Args:
        weights: By run name or role; 1 by default.
        normalize: How each list's scores are scaled first.
        missing: What counts for a run that did not return the document: ``zero``, ``min`` or
            ``skip``.
        options: Keys of a system: ``runs``, ``blend``, ``depth``, ``top_k``, …

    >>> weighted({"bm25": 0.3, "dense": 0.7}).method
    'weighted_score'
    """
    given = {"normalize": normalize, "missing": missing, **options}
    return MethodChoice(
        "weighted_score", given if weights is None else {**given, "weights": dict(weights)}
    )


def name_systems(given: Any, runs: RunNames) -> dict[str, Any]:  # noqa: ANN401 - many kinds
    """Systems by name, each as an experiment takes it.

    Args:
        given: ``{name: system}``, a list of systems, or one; None = each run alone.
        runs: All runs, or their names: those of a system that does not name its own, but for
            final lists.

    Raises:
        ConfigError: Something is no system, or two have one name.
    """
    if given is None:
        return {name: {"runs": [name]} for name in runs}
    if isinstance(given, Mapping) and not _is_system_data(given):
        return {str(name): system_keys(str(name), item, runs) for name, item in given.items()}
    items = given if isinstance(given, list) else [given]
    systems: dict[str, Any] = {}
    for item in items:
        name = _describe(item) if len(items) > 1 else default_name(item)
        if name in systems:
            raise ConfigError(f"two systems are named {name!r}: give them as {{name: system}}")
        systems[name] = system_keys(name, item, runs)
    return systems


def build_system(name: str, given: SystemLike, runs: RunNames) -> System:
    """One system, as ``RAG_FUSION_V2_ENABLED`` has it.

    Args:
        name: Its name.
        given: What it is.
        runs: All runs, or their names.

    Raises:
        ConfigError: A key or value breaks a rule.
    """
    keys = system_keys(name, given, runs)
    if isinstance(keys, System):
        return apply_switch(keys)

    def where(location: Location) -> str:
        return ".".join((name, *map(str, location)))

    return apply_switch(parse_model(System, {**keys, "name": name}, where))


def system_keys(name: str, given: Any, runs: RunNames) -> System | dict[str, Any]:  # noqa: ANN401
    """A system, or its keys as in YAML; arguments as for :func:`build_system`."""
    if isinstance(given, System):
        return given.model_copy(update={"name": name})
    if isinstance(given, Fusion):
        return {"runs": _list_sources(runs), "fusion": given}
    if isinstance(given, str):
        is_run = given in runs
        return {"runs": [given]} if is_run else {"runs": _list_sources(runs), "fusion": given}
    if isinstance(given, tuple) and len(given) == 2:
        given = MethodChoice(*given)
    if isinstance(given, MethodChoice) and isinstance(given.parameters, Mapping):
        keys = {key: value for key, value in given.parameters.items() if key in SYSTEM_KEYS}
        fusion = {key: value for key, value in given.parameters.items() if key not in SYSTEM_KEYS}
        return {"runs": _list_sources(runs), **keys, "fusion": {**fusion, "method": given.method}}
    if isinstance(given, Mapping):
        return {"runs": _list_sources(runs), **given}
    raise ConfigError(
        f"system {name!r}: give a method's name, (method, parameters), or a System, not {given!r}"
    )


def _list_sources(runs: RunNames) -> list[str]:
    """The runs of a system that names none: all that are no final list."""
    if not isinstance(runs, Mapping):
        return list(runs)
    return drop_final([*runs], [run.roles for run in runs.values()])


def _is_system_data(given: Mapping[str, Any]) -> bool:
    """Whether a mapping holds the keys of one system, and not systems by name."""
    return bool(given) and set(given) <= SYSTEM_KEYS | {"fusion"}


def default_name(given: object) -> str:
    """The name of a system that is given without one: that of its method."""
    if isinstance(given, System):
        return given.name
    if isinstance(given, Fusion):
        return given.method
    if isinstance(given, tuple) and len(given) == 2:
        given = MethodChoice(*given)
    if isinstance(given, MethodChoice):
        return given.method
    return given if isinstance(given, str) else "system"


def _describe(given: object) -> str:
    """The method with its numbers, which tells one from the next."""
    if isinstance(given, tuple) and len(given) == 2:
        given = MethodChoice(*given)
    if not isinstance(given, MethodChoice) or not isinstance(given.parameters, Mapping):
        return default_name(given)
    values = [f"{k}={v}" for k, v in given.parameters.items() if isinstance(v, int | float)]
    return " ".join([given.method, *values])
