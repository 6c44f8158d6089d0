"""Trained fusions of a system, fitted out of fold before anything is evaluated."""

from __future__ import annotations

from collections.abc import Mapping

from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.records import ScoreSpace
from fusion_bench.data.view_cache import cached_by_view
from fusion_bench.errors import ConfigError
from fusion_bench.evaluation.ranking.plain_systems import runs_with_stages
from fusion_bench.evaluation.ranking.policy_fitting import fit_policy
from fusion_bench.evaluation.ranking.query_classes import runs_of_class
from fusion_bench.evaluation.ranking.system_ranking import (
    name_owner_in_errors,
    name_system_in_errors,
)
from fusion_bench.experiment.system import System
from fusion_bench.fuse import CrossFitted, Trainable
from fusion_bench.policies import TrainablePolicy

#: Fitted fusions that a view remembers.
FITTED_KEPT = 64


def needs_fitting(system: System) -> bool:
    """Whether a policy, or a fusion of the system, of a query type or of a stage, is not fitted."""
    stages = (system.stages or {}).values()
    return bool(_trained_parts(system)) or any(needs_fitting(stage) for stage in stages)


def _trained_parts(system: System) -> list[str]:
    """The parts of the system itself that learn, and are not fitted."""
    by_class = (system.class_configs or {}).values()
    fusions = [part.fusion for part in by_class] or [system.fusion]
    is_trained = any(isinstance(fusion, Trainable) for fusion in fusions)
    has_policy = isinstance(system.policy, TrainablePolicy)
    return [*(["the fusion"] if is_trained else []), *(["the policy"] if has_policy else [])]


def _refuse_training_on_trained(system: System) -> None:
    """Raise where one part would learn from what another part learned.

    The inner models score the queries that the outer one learns from, and they have learned from
    the query that is scored: it would not be out of fold.
    """
    parts = _trained_parts(system)
    stages = (system.stages or {}).items()
    parts += [f"stage {name!r}" for name, stage in stages if needs_fitting(stage)] if parts else []
    if len(parts) > 1:
        raise ConfigError(
            f"system {system.name!r}: {' and '.join(parts)} are trained, and one would learn from "
            "the other: train one of them"
        )


def fit_system(
    system: System, runs: AlignedRuns, spaces: Mapping[str, ScoreSpace] | None = None
) -> System:
    """The system with its trained fusions fitted, its stages' first; itself if it has none.

    Every query of the runs is scored by a model that did not learn from it, other queries by a
    model that learned from all of these. A fusion for one query type or intent learns from queries
    of that class. Fitted systems stay as they are.

    Args:
        system: Any system.
        runs: All sources of the dataset, every query that may be learned from.
        spaces: Score space of each rerank list; only stages with a blend need them.

    Raises:
        AlignmentError: Too few queries, or none with a relevant document.
        ConfigError: The system does not fit the sources, or two parts would be trained one on
            the other.
    """
    if not needs_fitting(system):
        return system
    _refuse_training_on_trained(system)
    if system.stages is not None:
        stages = {}
        for name, stage in system.stages.items():
            with name_owner_in_errors(system):
                stages[name] = fit_system(stage, runs, spaces)
        system = system.model_copy(update={"stages": stages})
        runs = runs_with_stages(system, runs, spaces)
    key, configs = system.class_key, system.class_configs
    if key is None or configs is None:
        if isinstance(system.fusion, Trainable):
            system = system.model_copy(update={"fusion": _fit_fusion(system, runs)})
        return fit_policy(system, runs)
    parts = dict(configs)
    for name, part in parts.items():
        members = runs_of_class(runs, name, key, tuple(parts), system.types)
        if isinstance(part.fusion, Trainable) and members is not None:
            fitted = _fit_fusion(system.of_class(name), members, f"{key.field} {name!r}: ")
            parts[name] = part.model_copy(update={"fusion": fitted})
    return system.model_copy(update={key.key: parts})


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
