"""The gate from end to end: load, refuse what cannot be compared, check, decide, or update."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from fusion_bench._version import ENGINE, __version__
from fusion_bench.config.models import parse_model
from fusion_bench.errors import ConfigError, FusionBenchError
from fusion_bench.evaluation.prepared_dataset import EvaluationSet
from fusion_bench.experiment.system import System
from fusion_bench.gate.baseline import (
    Baseline,
    BaselineUpdate,
    digest_json,
    read_baseline,
    update_command,
    write_baseline,
)
from fusion_bench.gate.comparability import (
    find_changed_values,
    find_incompatibilities,
    find_list_changes,
)
from fusion_bench.gate.comparison import check_policy, pair_values
from fusion_bench.gate.inputs import GateInputs, describe_collection, find_unusable_lists
from fusion_bench.gate.result import GateVerdict, ListChange
from fusion_bench.stats.intervals import exact_mean
from fusion_bench.util.formatting import is_encodable


def run_gate(inputs: GateInputs, baseline: Path) -> GateVerdict:
    """Check an experiment's candidate for regressions against its baseline.

    Args:
        inputs: The experiment, and where its data is.
        baseline: File of the baseline.

    Returns:
        The verdict; where the two cannot be compared, ``refusals`` says why.

    Raises:
        FusionBenchError: The experiment, its data or the baseline's file breaks a rule.
    """
    policy, candidate, path = inputs.policy, inputs.candidate, inputs.source.path
    verdict = GateVerdict(
        experiment=path.stem,
        baseline=str(baseline),
        system=candidate.name,
        on_inconclusive=policy.inconclusive,
    )
    committed = read_baseline(baseline, path)
    if committed is None:
        refusal = f"no baseline at {baseline}: write and commit: {update_command(path, baseline)}"
        return verdict.model_copy(update={"refusals": (refusal,)})
    config = {**committed.config, "name": committed.system}
    reference = parse_model(System, config, lambda _: f"{baseline}: config")
    collections = inputs.load_collections(reference)
    descriptions = [describe_collection(task) for task in collections]
    refusals = [*find_incompatibilities(committed, inputs.experiment.ties, descriptions)]
    for task in collections:
        refusals += find_unusable_lists(task, inputs)
    changes = [] if refusals else [*find_list_changes(committed, descriptions)]
    if changes and policy.lists == "refuse":
        refusals = [change.description for change in changes]
    if not refusals:
        refusals = [*_find_irreproducible_values(committed, reference, collections, changes)]
    if refusals:
        return verdict.model_copy(update={"refusals": tuple(refusals)})
    pairs = pair_values(inputs, committed, collections, reference=reference, list_changes=changes)
    return check_policy(inputs, committed, pairs, changes, verdict)


def _find_irreproducible_values(
    committed: Baseline,
    reference: System,
    collections: Sequence[EvaluationSet],
    changes: Sequence[ListChange],
) -> Iterator[str]:
    """Committed values that differ now; new lists cannot reproduce old values, so they may."""
    changed = {change.collection for change in changes}
    for task in collections:
        if task.dataset.name not in changed:
            new = describe_collection(task, reference)
            yield from find_changed_values(committed.by_collection[task.dataset.name], new)


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
