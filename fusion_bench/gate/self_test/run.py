"""The self-test of an experiment's gate: two of its systems on its own collections."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from fusion_bench.config.models import Source
from fusion_bench.errors import ConfigError, UnknownNameError
from fusion_bench.experiment.experiment import Experiment
from fusion_bench.experiment.system import System
from fusion_bench.gate.check_statistics import Contest
from fusion_bench.gate.checks import contests
from fusion_bench.gate.loaded_collections import (
    Progress,
    candidate_of,
    load_arms,
    no_progress,
    policy_of,
    record,
)
from fusion_bench.gate.self_test.error_rates import SelfTest, self_test

__all__ = ["duel", "partner", "tryout"]


def partner(experiment: Experiment, source: Source, candidate: System, name: str | None) -> System:
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


def tryout(
    experiment: Experiment,
    source: Source,
    *,
    folders: Collection[Path],
    against: str | None = None,
    runs: int = 2000,
    progress: Progress = no_progress,
) -> tuple[SelfTest, tuple[str, str], list[Contest]]:
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
    checks, names = duel(
        experiment,
        source,
        folders=folders,
        against=against,
        progress=progress,
    )
    return self_test(checks, runs=runs, seed=experiment.seed, progress=progress), names, checks


def duel(
    experiment: Experiment,
    source: Source,
    *,
    folders: Collection[Path],
    against: str | None = None,
    progress: Progress = no_progress,
) -> tuple[list[Contest], tuple[str, str]]:
    """Every check of a policy between two systems of the experiment; arguments as above.

    Returns:
        The checks, and the names of the other and of the gated system.
    """
    policy = policy_of(experiment, source)
    candidate = candidate_of(experiment, source)
    other = partner(experiment, source, candidate, against)
    arms = load_arms(experiment, source, [candidate, other], folders=folders, progress=progress)
    values = [
        {arm.name: record(arm, system).arrays() for arm in arms} for system in (other, candidate)
    ]
    return list(contests(policy, arms, *values)), (other.name, candidate.name)
