"""The self-test of an experiment's gate: two of its systems on its own collections."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from fusion_bench.config.models import Source
from fusion_bench.errors import ConfigError, UnknownNameError
from fusion_bench.experiment.experiment import Experiment
from fusion_bench.experiment.system import System
from fusion_bench.gate.check_statistics import Check
from fusion_bench.gate.checks import build_checks
from fusion_bench.gate.loaded_collections import (
    Progress,
    evaluate_collection,
    ignore_progress,
    load_collections,
    require_policy,
    select_candidate,
)
from fusion_bench.gate.self_test.error_rates import SelfTestResult, measure_error_rates

__all__ = ["compare_two_systems", "run_self_test", "select_reference"]


def select_reference(
    experiment: Experiment, source: Source, candidate: System, name: str | None
) -> System:
    """The system that the gated one is held against: by default the baseline, or the next one.

    Raises:
        ConfigError: There is no other system.
    """
    if name is not None and name not in experiment.systems:
        raise UnknownNameError("system", name, experiment.systems, where="--against")
    names = [name] if name else [experiment.baseline, *experiment.systems]
    for other in names:
        if other is not None and other != candidate.name:
            return experiment.systems[other]
    raise ConfigError(
        f"{source.path}: a self-test needs two different systems, and there is only "
        f"{candidate.name!r}: add one to compare it with"
    )


def run_self_test(
    experiment: Experiment,
    source: Source,
    *,
    folders: Collection[Path],
    against: str | None = None,
    runs: int = 2000,
    progress: Progress = ignore_progress,
) -> tuple[SelfTestResult, tuple[str, str], list[Check]]:
    """Put the gate of an experiment on trial.

    Args:
        experiment: With a ``gate``.
        source: Where it was read from.
        folders: Where named datasets live.
        against: Another system of the experiment.
        runs: Of each kind.
        progress: Called as the work goes on.

    Returns:
        The self-test, the names of the two systems, and the checks.
    """
    checks, names = compare_two_systems(
        experiment,
        source,
        folders=folders,
        against=against,
        progress=progress,
    )
    return (
        measure_error_rates(checks, runs=runs, seed=experiment.seed, progress=progress),
        names,
        checks,
    )


def compare_two_systems(
    experiment: Experiment,
    source: Source,
    *,
    folders: Collection[Path],
    against: str | None = None,
    progress: Progress = ignore_progress,
) -> tuple[list[Check], tuple[str, str]]:
    """Every check of a policy between two systems of the experiment; arguments as above.

    Returns:
        The checks, and the names of the other and of the gated system.
    """
    policy = require_policy(experiment, source)
    candidate = select_candidate(experiment, source)
    other = select_reference(experiment, source, candidate, against)
    arms = load_collections(
        experiment, source, [candidate, other], folders=folders, progress=progress
    )
    values = [
        {arm.name: evaluate_collection(arm, system).value_arrays() for arm in arms}
        for system in (other, candidate)
    ]
    return list(build_checks(policy, arms, *values)), (other.name, candidate.name)
