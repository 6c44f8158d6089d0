"""Writing a baseline, with the reason for it."""

from __future__ import annotations

from collections.abc import Collection
from datetime import UTC, datetime
from pathlib import Path

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
    digest_json,
    read_baseline,
    write_baseline,
)
from fusion_bench.gate.loaded_collections import (
    Progress,
    describe_collection,
    find_unusable_lists,
    ignore_progress,
    load_collections,
    select_gated_system,
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
    if not reason.strip() or not is_encodable(reason):
        raise ConfigError("--reason: say why the values may change, in UTF-8 text")
    policy, candidate = select_gated_system(experiment, source)
    previous = read_baseline(baseline, source.path)
    collections = load_collections(
        experiment, source, [candidate], folders=folders, progress=progress
    )
    unusable = [text for c in collections for text in find_unusable_lists(c, candidate, policy)]
    if unusable:
        raise FusionBenchError(f"no baseline written: {'; '.join(unusable)}")
    progress("evaluating", 0, 1)
    records = tuple(describe_collection(loaded, candidate) for loaded in collections)
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
                reason=" ".join(reason.split()),
                version=__version__,
                config_sha256=digest_json(config),
                means={record.collection: _finite_means(record) for record in records},
            ),
        ),
    )
    write_baseline(new, baseline)
    return new


def _finite_means(record: CollectionBaseline) -> dict[str, float]:
    means = {}
    for name, values in record.value_arrays().items():
        if not np.isfinite(values).all():
            raise FusionBenchError(f"{record.collection}: {name} is not finite for some query")
        means[name] = exact_mean(values)
    return means
