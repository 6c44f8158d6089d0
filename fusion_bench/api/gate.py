"""Check a configuration for regressions, as the command does."""

from __future__ import annotations

import os
from collections.abc import Collection
from pathlib import Path

from fusion_bench.experiment.experiment import read_experiment
from fusion_bench.gate.baselines.storage import baseline_path
from fusion_bench.gate.inputs import GateInputs
from fusion_bench.gate.result import GateVerdict
from fusion_bench.gate.run import run_gate
from fusion_bench.gate.update import update_baseline
from fusion_bench.io.dataset_search import find_folders


def gate(
    experiment: str | os.PathLike[str],
    *,
    baseline: str | os.PathLike[str] | None = None,
    update: str | None = None,
    anchor: bool = False,
    folders: Collection[str | os.PathLike[str]] | None = None,
    base: str | None = None,
) -> GateVerdict:
    """Check an experiment's candidate for regressions against its committed baseline.

    Args:
        experiment: The experiment's file.
        baseline: File of the baseline; ``reports/baselines/EXPERIMENT.json`` by default.
        update: Why the values may change: the candidate becomes the baseline before it is checked.
        anchor: With ``update``: whether the candidate becomes the anchor, too.
        folders: Where named datasets live; by default ``datasets`` beside the experiment's folder,
            here, and in the folders above.
        base: The commit that the change starts from: a baseline that is the same there is trusted
            where changed lists cannot reproduce it.

    Returns:
        The verdict: ``headline``, ``checks``, ``exit_code``, …; writes no file without ``update``
        or ``candidates``.

    Raises:
        FusionBenchError: The experiment, its data or the baseline's file breaks a rule.
    """
    path = Path(experiment)
    parsed, source = read_experiment(path)
    inputs = GateInputs(parsed, source, find_folders(folders, path))
    file = baseline_path(path) if baseline is None else Path(baseline)
    if update is not None:
        update_baseline(inputs, file, update, anchor=anchor)
    return run_gate(inputs, file, base)
