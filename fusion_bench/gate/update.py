"""Writing the baseline: the one way there is, and never without a reason."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from fusion_bench._version import ENGINE, __version__
from fusion_bench.config.models import Source
from fusion_bench.errors import ConfigError, FusionBenchError
from fusion_bench.evaluation.scores import resolved_config
from fusion_bench.experiment.experiment import Experiment
from fusion_bench.gate.baseline import Baseline, BaselineUpdate, read_baseline, write_baseline
from fusion_bench.gate.loaded_collections import (
    Progress,
    evaluate_collection,
    ignore_progress,
    load_collections,
    require_policy,
    select_candidate,
    unusable_lists,
)
from fusion_bench.stats.intervals import exact_mean
from fusion_bench.util.formatting import is_encodable

__all__ = ["update_baseline"]


def update_baseline(
    experiment: Experiment,
    source: Source,
    *,
    baseline: Path,
    reason: str,
    folders: Collection[Path],
    progress: Progress = ignore_progress,
) -> Baseline:
    """Write the candidate as the new baseline, and keep the history of reasons.

    Args:
        experiment: With a ``gate``.
        source: Where it was read from.
        baseline: File to write.
        reason: Why the numbers may change.
        folders: Where named datasets live.
        progress: Called as the work goes on.

    Raises:
        FusionBenchError: Whatever is wrong; a degraded list or one that says nothing included.
    """
    if not is_encodable(reason):
        raise ConfigError("--reason: not UTF-8 text: write it in another way")
    policy = require_policy(experiment, source)
    candidate = select_candidate(experiment, source)
    history = _read_history(baseline, source.path)
    arms = load_collections(experiment, source, [candidate], folders=folders, progress=progress)
    reasons = [reason for arm in arms for reason in unusable_lists(arm, candidate, policy)]
    if reasons:
        raise FusionBenchError(f"no baseline written: {'; '.join(reasons)}")
    progress("evaluating", 0, 1)
    records = tuple(evaluate_collection(arm, candidate) for arm in arms)
    for arm in records:
        for name, values in arm.value_arrays().items():
            if not np.isfinite(values).all():
                raise FusionBenchError(f"{arm.collection}: {name} is not finite for some query")
    config = resolved_config(candidate)
    change = BaselineUpdate(
        updated_at=datetime.now(UTC).isoformat(timespec="seconds"),
        reason=" ".join(reason.split()) or " ",
        version=__version__,
        config_sha256=hashlib.sha256(json.dumps(config, sort_keys=True).encode()).hexdigest(),
        means={
            arm.collection: {
                name: exact_mean(values) for name, values in arm.value_arrays().items()
            }
            for arm in records
        },
    )
    written = Baseline(
        engine=ENGINE,
        experiment=source.path.stem,
        system=candidate.name,
        config=config,
        v2_enabled=experiment.v2_enabled,
        ties=experiment.ties,
        collections=records,
        history=(*history, change),
    )
    write_baseline(written, baseline)
    return written


def _read_history(path: Path, experiment: Path) -> tuple[BaselineUpdate, ...]:
    """The reasons so far; a baseline of an unreadable format must be moved away by hand."""
    old = read_baseline(path, experiment)
    return () if old is None else old.history
