"""The self-test of an experiment's gate: two of its systems on its own collections."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from fusion_bench.config.models import Source
from fusion_bench.errors import ConfigError, FusionBenchError, UnknownNameError
from fusion_bench.experiment.experiment import Experiment
from fusion_bench.gate.check_statistics import Check, run_checks
from fusion_bench.gate.checks import build_checks
from fusion_bench.gate.loaded_collections import (
    Progress,
    describe_collection,
    ignore_progress,
    load_collections,
    select_gated_system,
)
from fusion_bench.gate.report import power_warning
from fusion_bench.gate.self_test.error_rates import SelfTestResult, measure_error_rates


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
    checks, systems = _compare_two_systems(experiment, source, folders, progress, against)
    return measure_error_rates(
        checks, systems=systems, runs=runs, seed=experiment.seed, progress=progress
    )


def check_power(
    experiment: Experiment,
    source: Source,
    *,
    folders: Collection[Path],
    progress: Progress = ignore_progress,
) -> tuple[str, ...]:
    """Warn of the checks of an experiment that cannot detect drops near their tolerance.

    A future change is not known, so the spread is that of the gated system against the
    experiment's baseline, or the next system, as in the self-test; arguments as there.

    Returns:
        One warning a check. No warnings where no second system runs: then no spread is known.
    """
    try:
        checks, names = _compare_two_systems(experiment, source, folders, progress)
    except FusionBenchError:
        return ()
    progress("testing", 0, 1)
    return tuple(
        f"{check.name}: {warning} (from the differences of {names[1]} and {names[0]})"
        for check in run_checks(checks, seed=experiment.seed)
        if (warning := power_warning(check)) is not None
    )


def _compare_two_systems(
    experiment: Experiment,
    source: Source,
    folders: Collection[Path],
    progress: Progress,
    against: str | None = None,
) -> tuple[list[Check], tuple[str, str]]:
    """Every check of a policy, and the names of the reference and of the gated system."""
    policy, candidate = select_gated_system(experiment, source)
    if against is not None and against not in experiment.systems:
        raise UnknownNameError("system", against, experiment.systems, where="--against")
    names = [against] if against else [experiment.baseline, *experiment.systems]
    others = [experiment.systems[name] for name in names if name != candidate.name]
    if not others:
        raise ConfigError(
            f"{source.path}: a self-test needs two different systems, and the only one is "
            f"{candidate.name!r}"
        )
    reference = others[0]
    collections = load_collections(
        experiment, source, [candidate, reference], folders=folders, progress=progress
    )
    checks: list[Check] = []
    for loaded in collections:
        before, after = (
            describe_collection(loaded, system).value_arrays() for system in (reference, candidate)
        )
        checks += build_checks(policy, loaded, before, after)
    return checks, (reference.name, candidate.name)
