"""Fuse runs into one, without judgments."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fusion_bench.api.inputs.datasets import (
    open_dataset,
    read_dataset,
    read_rerankers,
    require_judgments,
)
from fusion_bench.api.inputs.records import read_queries, read_runs
from fusion_bench.api.inputs.systems import MethodChoice, SystemLike, build_system, default_name
from fusion_bench.data.records import ScoreSpace
from fusion_bench.data.run import Run
from fusion_bench.errors import ConfigError
from fusion_bench.evaluation.ranking.final_lists import align_all_queries, make_final_lists
from fusion_bench.evaluation.ranking.fitting import fit_system, needs_fitting


def fuse(
    runs: object,
    system: SystemLike = "rrf",
    *,
    rerankers: object = None,
    score_spaces: Mapping[str, ScoreSpace] | None = None,
    queries: object = None,
    name: str | None = None,
    **parameters: Any,  # noqa: ANN401 - the models check them
) -> Run:
    """Fuse runs into one list a query, as a system does.

    Args:
        runs: ``{name: run}``, a list of runs, or a dataset: its name, its path, or a ``Dataset``.
            A run is a path, a dictionary, a data frame, a ``Run`` of this package or of ranx, or
            rows of ir_measures or ir_datasets.
        system: A method's name, ``(method, parameters)``, what ``rrf(…)`` or ``weighted(…)``
            return, or a ``System``.
        rerankers: Rerank lists by name, for a ``blend``.
        score_spaces: What the numbers of each rerank list mean; guessed from them by default.
        queries: Types by query id, for weights by query type.
        name: Name of the new run; the method's by default.
        parameters: Of the method, such as ``k=60``, and keys of a system: ``blend``, ``depth``,
            ``top_k``, …

    Returns:
        The final lists of every query that some run answers. The scores fall along each list.

    Raises:
        FusionBenchError: Something breaks a rule; says what.

    >>> bm25 = {"q1": {"d2": 9.1, "d1": 7.4}}
    >>> dense = {"q1": {"d1": 0.8, "d3": 0.7}}
    >>> fused = fuse({"bm25": bm25, "dense": dense}, "rrf", k=60)
    >>> fused
    Run('rrf', 1 query, 3 documents)
    >>> list(fused.to_dict()["q1"])
    ['d1', 'd2', 'd3']
    """
    if parameters:
        system = _add_parameters(system, parameters)
    opened = open_dataset(runs)
    if opened is not None:
        dataset = read_dataset(
            opened, rerankers=rerankers, score_spaces=score_spaces, needs_judgments=False
        )
        tables, lists, spaces = dict(dataset.runs), dict(dataset.rerankers), dict(dataset.spaces)
        known = dataset.queries
    else:
        tables, (lists, spaces) = read_runs(runs), read_rerankers(rerankers, score_spaces)
        known = {}
    label = name or default_name(system)
    built = build_system(label, system, tables)
    for _, problem in built.find_misfits({key: t.roles for key, t in tables.items()}, [*lists]):
        raise ConfigError(f"{label}: {problem}")
    aligned = align_all_queries(
        list(tables.values()),
        rerankers=list(lists.values()),
        queries=read_queries(queries) or known,
    )
    if opened is not None and needs_fitting(built):
        require_judgments(dataset)
        built = fit_system(built, dataset.aligned(built.base_runs), dataset.spaces)
    return make_final_lists(built, aligned, spaces).to_run()


def _add_parameters(system: SystemLike, parameters: Mapping[str, Any]) -> MethodChoice:
    """The method with these parameters on top of its own.

    Raises:
        ConfigError: It is no method.
    """
    if isinstance(system, str):
        return MethodChoice(system, parameters)
    if isinstance(system, MethodChoice):
        return MethodChoice(system.method, {**system.parameters, **parameters})
    raise ConfigError(
        f"{', '.join(parameters)}: parameters go with a method's name: put them into the system"
    )
