"""Writing a baseline, with the reason for it."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from fusion_bench._version import ENGINE, __version__
from fusion_bench.errors import ConfigError, FusionBenchError
from fusion_bench.gate.baseline import (
    Baseline,
    BaselineUpdate,
    digest_json,
    read_baseline,
    write_baseline,
)
from fusion_bench.gate.inputs import GateInputs, describe_collection, find_unusable_lists
from fusion_bench.stats.intervals import exact_mean
from fusion_bench.util.formatting import is_encodable


def update_baseline(inputs: GateInputs, baseline: Path, reason: str) -> Baseline:
    """Write the candidate as the new baseline; the reasons of all updates stay in the file.

    Args:
        inputs: The experiment, and where its data is.
        baseline: File to write.
        reason: Why the numbers may change.

    Raises:
        FusionBenchError: The experiment or its data breaks a rule, a list is degraded or has no
            result, or a value is not finite.
    """
    if not reason.strip() or not is_encodable(reason):
        raise ConfigError("--reason: say why the values may change, in UTF-8 text")
    candidate, experiment = inputs.candidate, inputs.experiment
    previous = read_baseline(baseline, inputs.source.path)
    collections = inputs.load_collections()
    unusable = [text for task in collections for text in find_unusable_lists(task, inputs)]
    if unusable:
        raise FusionBenchError(f"no baseline written: {'; '.join(unusable)}")
    inputs.progress("evaluating", 0, 1)
    records = tuple(describe_collection(task, candidate) for task in collections)
    means: dict[str, dict[str, float]] = {}
    for record in records:
        for name, values in record.value_arrays().items():
            if not np.isfinite(values).all():
                raise FusionBenchError(f"{record.collection}: {name} is not finite for some query")
            means.setdefault(record.collection, {})[name] = exact_mean(values)
    config = candidate.resolved_config
    update = BaselineUpdate(
        updated_at=datetime.now(UTC).isoformat(timespec="seconds"),
        reason=" ".join(reason.split()),
        version=__version__,
        config_sha256=digest_json(config),
        means=means,
    )
    new = Baseline(
        engine=ENGINE,
        experiment=inputs.source.path.stem,
        system=candidate.name,
        config=config,
        v2_enabled=experiment.v2_enabled,
        ties=experiment.ties,
        collections=records,
        history=(*(() if previous is None else previous.history), update),
    )
    write_baseline(new, baseline)
    return new
