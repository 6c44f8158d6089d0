"""The gate from end to end: load, refuse what cannot be compared, check, decide, or update."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from fusion_bench.checks.query_warnings import count_synthetic
from fusion_bench.config.models import parse_model
from fusion_bench.evaluation.prepared_dataset import EvaluationSet
from fusion_bench.experiment.settings import GatePolicy
from fusion_bench.experiment.system import System
from fusion_bench.gate.baseline import Baseline, CollectionBaseline, LedgerLine, ListChange
from fusion_bench.gate.baseline_files import (
    BaseCommit,
    candidates_path,
    count_candidate,
    make_candidate,
    read_base,
    read_baseline,
    update_command,
)
from fusion_bench.gate.comparability import (
    describe_unaccepted,
    find_changed_values,
    find_incompatibilities,
    find_list_changes,
    find_repeat_changes,
)
from fusion_bench.gate.comparison import (
    PairedValues,
    check_policy,
    find_anchor_breaks,
    pair_values,
    search_queries,
)
from fusion_bench.gate.inputs import (
    GateInputs,
    describe_collection,
    find_unreachable_limits,
    find_unusable_lists,
    find_warnings,
    lint_candidate,
)
from fusion_bench.gate.result import GateVerdict
from fusion_bench.gate.verdict import find_blocking
from fusion_bench.util.file_paths import name_experiment, show_path


def run_gate(inputs: GateInputs, baseline: Path, base: str | None = None) -> GateVerdict:
    """Check an experiment's candidate for regressions against its baseline.

    Args:
        inputs: The experiment, and where its data is.
        baseline: File of the baseline.
        base: The commit that the change starts from, whose baseline is trusted; None = not known.

    Returns:
        The verdict; where the two cannot be compared, ``refusals`` says why.

    Raises:
        FusionBenchError: The experiment, its data or the baseline's file breaks a rule, or the
            candidates cannot be counted, or git knows no such commit.
    """
    policy, candidate, path = inputs.policy, inputs.candidate, inputs.source.path
    verdict = GateVerdict(
        experiment=name_experiment(path),
        experiment_file=show_path(path),
        overrides=inputs.source.override_texts,
        baseline=str(baseline),
        system=candidate.name,
        blocking=find_blocking(policy),
        runs=policy.runs,
        v2_enabled=inputs.experiment.v2_enabled,
    )
    committed = read_baseline(baseline, path)
    if committed is None:
        missing = f"no baseline at {baseline}: write and commit: {update_command(path, baseline)}"
        return verdict.model_copy(update={"refusals": (missing,)})
    changes = inputs.find_policy_changes(committed)
    verdict = verdict.model_copy(
        update={
            "baseline_experiment": committed.experiment,
            "baseline_system": committed.system,
            "baseline_reason": committed.history[-1].reason,
            "baseline_v2_enabled": committed.v2_enabled,
            "policy_changes": changes,
        }
    )
    earlier = None if base is None else read_base(baseline, base)
    refusal = describe_unaccepted(changes, update_command(path, baseline))
    if refusal is None and earlier is not None:
        refusal = earlier.refuse_other_history(committed)
        verdict = verdict.model_copy(update={"base": base, "is_base": earlier.is_same})
    if refusal is not None:
        return verdict.model_copy(update={"refusals": (refusal,)})
    return _compare(inputs, baseline, committed, verdict, earlier)


def _compare(
    inputs: GateInputs,
    baseline: Path,
    committed: Baseline,
    verdict: GateVerdict,
    earlier: BaseCommit | None,
) -> GateVerdict:
    """The verdict, completed by what the candidate's values say against those of the baseline."""
    policy, candidate = inputs.policy, inputs.candidate
    config = {**committed.config, "name": committed.system}
    reference = parse_model(System, config, lambda _: f"{baseline}: config")
    collections = inputs.load_collections(reference, committed=committed)
    notices = {
        "lint": lint_candidate(inputs),
        "data_warnings": tuple(find_warnings(collections, candidate)),
        "near_duplicates": search_queries(collections),
        "synthetic_queries": sum(
            count_synthetic(task.dataset.queries, task.runs.queries) for task in collections
        ),
    }
    verdict = verdict.model_copy(update=notices)
    descriptions = [describe_collection(task) for task in collections]
    refusals = _find_refusals(inputs, committed, collections, descriptions)
    changes = [] if refusals else [*find_list_changes(committed, descriptions)]
    if changes and policy.lists == "refuse":
        refusals = [change.description for change in changes]
    elif not refusals:
        command = update_command(inputs.source.path, baseline)
        refusals = [*find_repeat_changes(committed, descriptions, command)]
    if not refusals:
        refusals = [*_find_irreproducible_values(committed, reference, collections, changes)]
    if refusals:
        unusable = (text for task in collections for text in find_unusable_lists(task, inputs))
        breaks = find_anchor_breaks(committed, inputs.experiment.ties, descriptions)
        refused = {
            "refusals": tuple(refusals),
            "needs_anchor": any(breaks),
            "is_acceptable": not any(unusable),
        }
        return verdict.model_copy(update=refused)
    if changes:
        verdict = verdict.model_copy(update=_describe_reproduction(policy, changes, earlier))
    values = pair_values(inputs, committed, collections, reference=reference, list_changes=changes)
    if policy.candidates is not None:
        number, line = _count_candidate(inputs, baseline, committed, values, earlier)
        counted = {
            "candidate_number": number,
            "candidate_line": line,
            "refusals": _refuse_too_many(number, policy.runs),
        }
        verdict = verdict.model_copy(update=counted)
        if verdict.refusals:
            return verdict
    return check_policy(inputs, committed, values, changes, verdict)


def _find_refusals(
    inputs: GateInputs,
    committed: Baseline,
    collections: Sequence[EvaluationSet],
    descriptions: Sequence[CollectionBaseline],
) -> list[str]:
    """Why the values cannot be compared, or a check could not fail."""
    refusals = [*find_incompatibilities(committed, inputs.experiment.ties, descriptions)]
    for task in collections:
        refusals += find_unusable_lists(task, inputs)
    if refusals:
        return refusals
    known = committed.by_collection
    pairs = [(task, known[task.dataset.name]) for task in collections]
    return [*find_unreachable_limits(inputs, pairs)]


def _describe_reproduction(
    policy: GatePolicy, changes: Sequence[ListChange], earlier: BaseCommit | None
) -> dict[str, Any]:
    """The lists without which stored values cannot be computed again, and who accepts that.

    A policy that came with the change accepts nothing.
    """
    lists = dict.fromkeys(f"{change.collection}: {change.part}" for change in changes)
    trusted = policy.unreproduced == "accept"
    if earlier is not None:
        known = None if earlier.baseline is None else earlier.baseline.policy.get("unreproduced")
        trusted = trusted and known == "accept"
    accepted = "base" if earlier is not None and earlier.is_same else "policy" if trusted else None
    return {"unreproduced": tuple(lists), "unreproduced_accepted_by": accepted}


def _count_candidate(
    inputs: GateInputs,
    baseline: Path,
    committed: Baseline,
    pairs: Sequence[PairedValues],
    earlier: BaseCommit | None,
) -> tuple[int | None, LedgerLine | None]:
    """The number of this candidate since the last update, and its line in the ledger.

    Both are None where it has the baseline's values.
    """
    unchanged = (
        np.array_equal(pair.before[name], pair.after[name]) for pair in pairs for name in pair.after
    )
    if all(unchanged):
        return None, None
    values = {pair.task.dataset.name: pair.after for pair in pairs}
    tried = make_candidate(values, inputs.candidate.name, committed.checksum)
    needed = [line for line in (committed.ledger,) if line is not None]
    needed += () if earlier is None else earlier.candidates
    path = candidates_path(baseline)
    return count_candidate(path, tried, limit=inputs.policy.runs, needed=needed)


def _refuse_too_many(number: int | None, runs: int) -> tuple[str, ...]:
    """Why one candidate more cannot be checked; nothing where it can."""
    if number is None or number <= runs:
        return ()
    return (
        f"{runs} different candidates were checked since the last update, as many as "
        "candidates.max allows: update the baseline, or start over with a larger one",
    )


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
