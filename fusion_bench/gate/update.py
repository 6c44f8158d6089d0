"""Writing a baseline, with the reason for it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from fusion_bench._version import ENGINE, __version__
from fusion_bench.config.models import Source
from fusion_bench.errors import ConfigError, FusionBenchError
from fusion_bench.evaluation.scores import resolved_config
from fusion_bench.experiment.experiment import Experiment
from fusion_bench.gate.baseline import (
    Baseline,
    BaselineUpdate,
    CollectionBaseline,
    read_baseline,
    write_baseline,
)
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


def update_baseline(
    experiment: Experiment,
    source: Source,
    *,
    baseline: Path,
    reason: str,
    folders: Collection[Path],
    progress: Progress = ignore_progress,
) -> Baseline:
    """Write the candidate as the new baseline; the reasons of all updates stay in the file.

    Args:
        experiment: With a ``gate``.
        source: Where it was read from.
        baseline: File to write.
        reason: Why the numbers may change.
        folders: Where named datasets live.
        progress: Called with the stage, the steps done and all steps.

    Raises:
        FusionBenchError: The experiment or its data breaks a rule, a list is degraded or has no
            result, or a value is not finite.
    """
    if not is_encodable(reason):
        raise ConfigError("--reason: not UTF-8 text")
    policy = require_policy(experiment, source)
    candidate = select_candidate(experiment, source)
    previous = read_baseline(baseline, source.path)
    collections = load_collections(
        experiment, source, [candidate], folders=folders, progress=progress
    )
    unusable = [
        text for loaded in collections for text in unusable_lists(loaded, candidate, policy)
    ]
    if unusable:
        raise FusionBenchError(f"no baseline written: {'; '.join(unusable)}")
    progress("evaluating", 0, 1)
    records = tuple(evaluate_collection(loaded, candidate) for loaded in collections)
    config = resolved_config(candidate)
    new = Baseline(
        engine=ENGINE,
        experiment=source.path.stem,
        system=candidate.name,
        config=config,
        v2_enabled=experiment.v2_enabled,
        ties=experiment.ties,
        collections=records,
        history=(
            *(() if previous is None else previous.history),
            BaselineUpdate(
                updated_at=datetime.now(UTC).isoformat(timespec="seconds"),
                reason=" ".join(reason.split()) or " ",
                version=__version__,
                config_sha256=_config_digest(config),
                means={record.collection: _finite_means(record) for record in records},
            ),
        ),
    )
    write_baseline(new, baseline)
    return new


def _config_digest(config: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(config, sort_keys=True).encode()).hexdigest()


def _finite_means(record: CollectionBaseline) -> dict[str, float]:
    means = {}
    for name, values in record.value_arrays().items():
        if not np.isfinite(values).all():
            raise FusionBenchError(f"{record.collection}: {name} is not finite for some query")
        means[name] = exact_mean(values)
    return means
