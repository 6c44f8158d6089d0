"""What a gate will not see, told before it is relied on: from the spread of two systems.

``regressed`` asks for a mean below −m, so the smallest drop that is seen four times in five is
greater than m however many queries there are. Up to about 1.4 m the tolerance itself decides;
beyond that it is noise, which the square root of the number of queries divides.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import asdict
from math import ceil
from pathlib import Path

from fusion_bench.config.models import Source
from fusion_bench.errors import FusionBenchError
from fusion_bench.experiment.experiment import Experiment
from fusion_bench.gate.check_statistics import run_checks
from fusion_bench.gate.loaded_collections import Progress, ignore_progress
from fusion_bench.gate.result import CheckResult
from fusion_bench.gate.self_test.run import compare_two_systems
from fusion_bench.gate.self_test.simulate import check_name
from fusion_bench.util.formatting import format_number, pluralize

__all__ = ["check_power", "power_warning", "required_queries"]

#: A detectable drop beyond so many tolerances is the work of noise.
NOISY = 1.5


def check_power(
    experiment: Experiment,
    source: Source,
    *,
    folders: Collection[Path],
    progress: Progress = ignore_progress,
) -> tuple[str, ...]:
    """What the gate of an experiment will not see.

    A future change is not known, so the spread is that of the gated system against the
    experiment's baseline, or the next system, as in the self-test.

    Args:
        experiment: With a ``gate``.
        source: Where it was read from.
        folders: Where named datasets live.
        progress: Called as the work goes on.

    Returns:
        A sentence for each check that cannot guard its tolerance. None where the experiment has
        no second system, or one that does not run: then nothing tells the spread.
    """
    try:
        checks, names = compare_two_systems(experiment, source, folders=folders, progress=progress)
    except FusionBenchError:
        return ()
    progress("testing", 0, 1)
    told = f"by the spread of {names[1]} against {names[0]}"
    found = run_checks(checks, seed=experiment.seed)
    words = [
        power_warning(CheckResult(**asdict(evidence), few_changed=evidence.few_changed))
        for evidence in found
    ]
    return tuple(
        f"{check_name(check)}: {said} ({told})"
        for check, said in zip(checks, words, strict=True)
        if said is not None
    )


def power_warning(check: CheckResult) -> str | None:
    """Why a check cannot guard its tolerance; None = it can, or nothing tells.

    Args:
        check: With the powers of the rule. Fewer than ten changed queries say nothing of them.
    """
    if (
        check.min_detectable_drop is None
        or check.few_changed
        or check.min_detectable_drop <= NOISY * check.max_drop
    ):
        return None
    grouped = f" in {pluralize(check.groups, 'group')}" if check.groups < check.queries else ""
    return (
        f"with {pluralize(check.queries, 'query')}{grouped} only drops of "
        f"{format_number(check.min_detectable_drop)} or more are seen 4 times in 5; "
        f"max_drop "
        f"{check.max_drop:g} is a wish: {required_queries(check)}"
    )


def required_queries(check: CheckResult) -> str:
    """How many queries would do, to two digits: until noise is no greater than the tolerance."""
    if not check.max_drop:
        return "no number of queries would do"
    queries = ceil(check.queries * ((check.min_detectable_drop or 0.0) / check.max_drop) ** 2)
    unit = 10 ** max(0, len(str(queries)) - 2)
    return f"about {ceil(queries / unit) * unit:,} queries would be needed"
