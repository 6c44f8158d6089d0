"""What a gate will not see, told before it is relied on: from the spread of two systems."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import asdict
from pathlib import Path

from fusion_bench.config.models import Source
from fusion_bench.errors import FusionBenchError
from fusion_bench.experiment.experiment import Experiment
from fusion_bench.gate.check_statistics import weigh
from fusion_bench.gate.loaded_collections import Progress, no_progress
from fusion_bench.gate.result import CheckResult
from fusion_bench.gate.self_test.run import duel
from fusion_bench.gate.self_test.simulate import name_of
from fusion_bench.gate.underpowered import wish

__all__ = ["foresee"]


def foresee(
    experiment: Experiment,
    source: Source,
    *,
    folders: Collection[Path],
    v2_enabled: bool = True,
    progress: Progress = no_progress,
) -> tuple[str, ...]:
    """What the gate of an experiment will not see.

    A future change is not known, so the spread is that of the gated system against the
    experiment's baseline, or the next system, as in the self-test.

    Args:
        experiment: With a ``gate``.
        source: Where it was read from.
        folders: Where named datasets live.
        v2_enabled: As for ``judge``.
        progress: Called as the work goes on.

    Returns:
        A sentence for each check that cannot guard its tolerance. None where the experiment has
        no second system, or one that does not run: then nothing tells the spread.
    """
    try:
        checks, names = duel(
            experiment, source, folders=folders, v2_enabled=v2_enabled, progress=progress
        )
    except FusionBenchError:
        return ()
    progress("testing", 0, 1)
    told = f"by the spread of {names[1]} against {names[0]}"
    found = weigh(checks, seed=experiment.seed)
    words = [wish(CheckResult(**asdict(evidence), few=evidence.few)) for evidence in found]
    return tuple(
        f"{name_of(check)}: {said} ({told})"
        for check, said in zip(checks, words, strict=True)
        if said is not None
    )
