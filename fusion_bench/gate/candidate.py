"""What is guarded, by which policy, and whether its arms ran as they are called."""

from __future__ import annotations

from collections.abc import Iterator

from fusion_bench.config.models import Source
from fusion_bench.errors import ConfigError
from fusion_bench.experiment.experiment import Experiment
from fusion_bench.experiment.gate_settings import GatePolicy
from fusion_bench.experiment.system import System
from fusion_bench.gate.loaded_collections import Arms, silent_lists

__all__ = ["candidate_of", "policy_of", "unsound"]


def policy_of(experiment: Experiment, source: Source) -> GatePolicy:
    """The experiment's policy.

    Raises:
        ConfigError: It has none.
    """
    if experiment.gate is None:
        raise ConfigError(
            f"{source.path}: no 'gate' key, so nothing says what may not fall: add, for example, "
            "gate: {system: NAME, checks: {nDCG@10: {max_drop: 0.005}}}"
        )
    return experiment.gate


def candidate_of(experiment: Experiment, source: Source, *, v2_enabled: bool = True) -> System:
    """The system that is guarded, as it runs.

    Raises:
        ConfigError: The experiment has several and does not say which.
    """
    system = experiment.gated_system
    if system is None:
        raise ConfigError(
            f"{source.where(('gate',))}: several systems, and nothing says which one is guarded: "
            f"name it under gate.system ({', '.join(experiment.systems)})"
        )
    return system if v2_enabled else system.without_v2()


def unsound(arms: Arms, candidate: System, policy: GatePolicy) -> Iterator[str]:
    """Arms that would be certified although they never ran as they are called."""
    for name in candidate.rerankers if policy.degraded == "refuse" else ():
        reason = arms.task.dataset.degradation(name)
        if reason is not None:
            yield f"{arms.name}: {reason}"
    for what in silent_lists(arms, candidate):
        yield f"{arms.name}: {what} says nothing about any evaluated query: the arm never ran"
