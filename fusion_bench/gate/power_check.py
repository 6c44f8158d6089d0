"""Warnings about checks whose minimum detectable drop is larger than their tolerance.

``regressed`` requires a mean below −m, so the minimum detectable drop exceeds m for any number of
queries. Up to about 1.4 m the tolerance itself sets it. Beyond that noise does, which the square
root of the number of queries divides.
"""

from __future__ import annotations

from collections.abc import Collection
from math import ceil
from pathlib import Path

from fusion_bench.config.models import Source
from fusion_bench.errors import FusionBenchError
from fusion_bench.experiment.experiment import Experiment
from fusion_bench.gate.check_statistics import run_checks
from fusion_bench.gate.loaded_collections import Progress, ignore_progress
from fusion_bench.gate.result import CheckResult
from fusion_bench.gate.self_test.run import compare_two_systems
from fusion_bench.util.formatting import format_number, pluralize

#: Above this many tolerances, noise and not the tolerance sets the minimum detectable drop.
NOISY = 1.5


def check_power(
    experiment: Experiment,
    source: Source,
    *,
    folders: Collection[Path],
    progress: Progress = ignore_progress,
) -> tuple[str, ...]:
    """Warn of the checks of an experiment that cannot detect drops near their tolerance.

    A future change is not known, so the spread is that of the gated system against the
    experiment's baseline, or the next system, as in the self-test.

    Args:
        experiment: With a ``gate``.
        source: Where it was read from.
        folders: Where named datasets live.
        progress: Called with the stage, the steps done and all steps.

    Returns:
        One warning a check. No warnings where no second system runs: then no spread is known.
    """
    try:
        checks, names = compare_two_systems(experiment, source, folders=folders, progress=progress)
    except FusionBenchError:
        return ()
    progress("testing", 0, 1)
    warnings = (
        (check.name, power_warning(check)) for check in run_checks(checks, seed=experiment.seed)
    )
    return tuple(
        f"{name}: {warning} (from the differences of {names[1]} and {names[0]})"
        for name, warning in warnings
        if warning is not None
    )


def power_warning(check: CheckResult) -> str | None:
    """Why a check cannot detect drops near its tolerance; None = it can, or it is not known."""
    drop = check.min_detectable_drop
    if drop is None or check.few_changed or drop <= NOISY * check.max_drop:
        return None
    return (
        f"minimum detectable drop (80 % power) {format_number(drop)}, larger than max_drop "
        f"{check.max_drop:g}; {required_queries_text(check)}"
    )


def required_queries(check: CheckResult) -> int | None:
    """Queries at which noise is no greater than the tolerance, to two digits; None = no number."""
    if not check.max_drop:
        return None
    queries = ceil(check.queries * ((check.min_detectable_drop or 0.0) / check.max_drop) ** 2)
    unit: int = 10 ** max(0, len(str(queries)) - 2)
    return ceil(queries / unit) * unit


def required_queries_text(check: CheckResult) -> str:
    """How many queries the check has, and how many it needs."""
    needed = required_queries(check)
    has = pluralize(check.queries, "query")
    if check.groups < check.queries:
        has += f" in {pluralize(check.groups, 'group')}"
    if needed is None:
        return f"{has}, and no number of queries suffices"
    return f"{has}, and about {needed:,} are needed"
