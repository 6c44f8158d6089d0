"""Trained fusions of a system, fitted out of fold before anything is evaluated."""

from __future__ import annotations

from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.view_cache import cached_by_view
from fusion_bench.evaluation.plain_systems import name_system_in_errors, runs_of_type
from fusion_bench.experiment.system import System
from fusion_bench.fuse import CrossFitted, Trainable

#: Fitted fusions that a view remembers.
FITTED_KEPT = 64


def needs_fitting(system: System) -> bool:
    """Whether the system, or a part of it for one query type, has a fusion that is not fitted."""
    by_type = (system.by_query_type or {}).values()
    if system.by_query_type is None:
        return isinstance(system.fusion, Trainable)
    return any(isinstance(part.fusion, Trainable) for part in by_type)


def fit_system(system: System, runs: AlignedRuns) -> System:
    """The system with its trained fusions fitted; itself if it has none.

    Every query of the runs is scored by a model that did not learn from it, other queries by a
    model that learned from all of these. A fusion for one query type learns from queries of that
    type. Fitted systems stay as they are.

    Args:
        system: Any system.
        runs: All sources of the dataset, every query that may be learned from.

    Raises:
        AlignmentError: Too few queries, or none with a relevant document.
        ConfigError: The system does not fit the sources.
    """
    if not needs_fitting(system):
        return system
    if system.by_query_type is None:
        return system.model_copy(update={"fusion": _fit_fusion(system, runs)})
    parts = dict(system.by_query_type)
    for query_type, part in parts.items():
        typed = runs_of_type(runs, query_type, tuple(parts))
        if isinstance(part.fusion, Trainable) and typed is not None:
            fitted = _fit_fusion(system.of_type(query_type), typed, f"type {query_type!r}: ")
            parts[query_type] = part.model_copy(update={"fusion": fitted})
    return system.model_copy(update={"by_query_type": parts})


def _fit_fusion(system: System, runs: AlignedRuns, where: str = "") -> CrossFitted:
    """The trained fusion of a plain system, fitted to the lists as the system cuts them."""
    with name_system_in_errors(system, where):
        fusion = system.fusion
        if not isinstance(fusion, Trainable):
            raise TypeError(f"{fusion.method} is not trained")
        return _cross_fit(system.active_runs(runs), fusion)


@cached_by_view(keep=FITTED_KEPT, key=lambda fusion: (type(fusion), fusion.model_dump_json()))
def _cross_fit(view: AlignedRuns, fusion: Trainable) -> CrossFitted:
    return fusion.cross_fit(view)
