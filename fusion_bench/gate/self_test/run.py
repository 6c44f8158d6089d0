"""The self-test of an experiment's gate: two of its systems on its own collections."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
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


def select_reference(
    experiment: Experiment, source: Source, candidate: System, name: str | None
) -> System:
    """The system to compare the gated one with: by default the baseline, or the next system.

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
        f"{source.path}: a self-test needs two different systems, and the only one is "
        f"{candidate.name!r}"
    )


def run_self_test(
    experiment: Experiment,
    source: Source,
    *,
    folders: Collection[Path],
    against: str | None = None,
    runs: int = 2000,
    progress: Progress = ignore_progress,
) -> SelfTestResult:
    """Measure the error rates of an experiment's gate.

    Args:
        experiment: With a ``gate``.
        source: Where it was read from.
        folders: Where named datasets live.
        against: Another system of the experiment.
        runs: Runs of each kind.
        progress: Called with the stage, the steps done and all steps.
    """
    checks, systems = compare_two_systems(
        experiment, source, folders=folders, against=against, progress=progress
    )
    result = measure_error_rates(checks, runs=runs, seed=experiment.seed, progress=progress)
    return replace(result, systems=systems)


def compare_two_systems(
    experiment: Experiment,
    source: Source,
    *,
    folders: Collection[Path],
    against: str | None = None,
    progress: Progress = ignore_progress,
) -> tuple[list[Check], tuple[str, str]]:
    """Build every check of a policy from two systems of the experiment; arguments as above.

    Returns:
        The checks, and the names of the reference and of the gated system.
    """
    policy = require_policy(experiment, source)
    candidate = select_candidate(experiment, source)
    reference = select_reference(experiment, source, candidate, against)
    collections = load_collections(
        experiment, source, [candidate, reference], folders=folders, progress=progress
    )
    before, after = (
        {loaded.name: evaluate_collection(loaded, system).value_arrays() for loaded in collections}
        for system in (reference, candidate)
    )
    checks = list(build_checks(policy, collections, before, after))
    return checks, (reference.name, candidate.name)
