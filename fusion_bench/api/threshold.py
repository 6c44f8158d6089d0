"""Which signal of a system can carry a threshold."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from fusion_bench.config.yaml_files import Source
from fusion_bench.evaluation.thresholds import (
    SignalFunction,
    ThresholdReport,
    ThresholdSettings,
    measure_thresholds,
)
from fusion_bench.experiment.experiment import Experiment, read_experiment
from fusion_bench.io.dataset_config import find_folders
from fusion_bench.stats.thresholds import MIN_KEPT


def threshold(
    experiment: Experiment | str | os.PathLike[str],
    source: Source | None = None,
    *,
    systems: Sequence[str] = (),
    signal: str | None = None,
    signals: Mapping[str, SignalFunction] | None = None,
    false_answers: float | None = None,
    min_kept: float = MIN_KEPT,
    mask: bool = False,
    folders: Collection[str | os.PathLike[str]] | None = None,
) -> ThresholdReport:
    """Find which signals can tell queries with an answer from queries without one.

    Args:
        experiment: Its file, or what ``read_experiment`` gave.
        source: The second of what ``read_experiment`` gave.
        systems: Names of the systems; empty = all.
        signal: Only this signal: then all queries calibrate its threshold.
        signals: Your own: name → function of aligned runs that returns one number per query.
        false_answers: Share of the unanswerable queries that may be answered; None = that of the
            system's ``abstain``, or .10.
        min_kept: A signal that keeps less of the answerable queries cannot carry a threshold.
        mask: Take the relevant documents of half of the queries away, if no query is known to have
            no answer.
        folders: Where named datasets live; as for ``run_experiment``.

    Returns:
        For each dataset its ``signals`` and the ``chosen`` one, whose ``threshold`` is promised.

    Raises:
        FusionBenchError: The experiment or its data breaks a rule, or there are too few queries.
    """
    if not isinstance(experiment, Experiment):
        experiment, source = read_experiment(Path(experiment))
    origin = source or Source(Path("experiment"), experiment.model_dump(mode="json"))
    settings = ThresholdSettings(
        false_answers=false_answers,
        min_kept=min_kept,
        mask=mask,
        signal=signal,
        functions=signals,
        seed=experiment.seed,
    )
    places = find_folders(folders or None, origin.path)
    return measure_thresholds(experiment, origin, settings, folders=places, systems=systems)
