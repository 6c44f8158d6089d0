"""The gate from end to end: load, refuse what cannot be compared, check, decide, or update."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from fusion_bench.config.models import parse_model
from fusion_bench.evaluation.prepared_dataset import EvaluationSet
from fusion_bench.experiment.system import System
from fusion_bench.gate.baseline import (
    Baseline,
    read_baseline,
    update_command,
)
from fusion_bench.gate.changes import ListChange
from fusion_bench.gate.comparability import (
    find_changed_values,
    find_incompatibilities,
    find_list_changes,
)
from fusion_bench.gate.comparison import check_policy, pair_values
from fusion_bench.gate.inputs import (
    GateInputs,
    describe_collection,
    find_unusable_lists,
    lint_candidate,
)
from fusion_bench.gate.result import GateVerdict
from fusion_bench.gate.verdict import find_blocking
from fusion_bench.util.output_folder import name_experiment


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
        experiment=name_experiment(path),
        baseline=str(baseline),
        system=candidate.name,
        blocking=find_blocking(policy),
        v2_enabled=inputs.experiment.v2_enabled,
    )
    committed = read_baseline(baseline, path)
    if committed is None:
        refusal = f"no baseline at {baseline}: write and commit: {update_command(path, baseline)}"
        return verdict.model_copy(update={"refusals": (refusal,)})
    verdict = verdict.model_copy(update={"baseline_v2_enabled": committed.v2_enabled})
    config = {**committed.config, "name": committed.system}
    reference = parse_model(System, config, lambda _: f"{baseline}: config")
    collections = inputs.load_collections(reference)
    verdict = verdict.model_copy(update={"lint": lint_candidate(inputs)})
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
