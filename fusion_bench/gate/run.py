"""The gate from end to end: load, refuse what cannot be compared, weigh, guard, decide."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from fusion_bench.config.models import Source, validated
from fusion_bench.evaluation.scores import described
from fusion_bench.experiment.experiment import Experiment
from fusion_bench.experiment.gate_settings import GatePolicy
from fusion_bench.experiment.system import System
from fusion_bench.gate.baseline import Baseline, read_baseline, update_command
from fusion_bench.gate.check_statistics import run_checks
from fusion_bench.gate.checks import build_checks, check_golden_queries, run_guards
from fusion_bench.gate.comparability import find_changed_values, find_incompatibilities
from fusion_bench.gate.loaded_collections import (
    LoadedCollection,
    Progress,
    describe_collection,
    evaluate_collection,
    ignore_progress,
    load_collections,
    require_policy,
    select_candidate,
    unusable_lists,
)
from fusion_bench.gate.regressions import worst_queries
from fusion_bench.gate.result import CheckResult, GateVerdict, QueryCheck
from fusion_bench.gate.verdict import REFUSED, decide_exit_code

__all__ = ["run_gate"]


def run_gate(
    experiment: Experiment,
    source: Source,
    *,
    baseline: Path,
    folders: Collection[Path],
    progress: Progress = ignore_progress,
) -> GateVerdict:
    """Hold the candidate to the baseline.

    Args:
        experiment: With a ``gate``.
        source: Where it was read from.
        baseline: File of the baseline.
        folders: Where named datasets live.
        progress: Called as the work goes on.

    Returns:
        The decision; where the two cannot be compared, ``refused`` says why.

    Raises:
        FusionBenchError: Whatever is wrong with the experiment, its data or the baseline's file.
    """
    policy = require_policy(experiment, source)
    candidate = select_candidate(experiment, source)
    blank = GateVerdict(
        experiment=source.path.stem,
        baseline=str(baseline),
        system=candidate.name,
        on_inconclusive=policy.inconclusive,
        exit_code=REFUSED,
    )
    old = read_baseline(baseline, source.path)
    if old is None:
        command = update_command(source.path, baseline)
        missing = f"no baseline at {baseline}: write one, and commit it: {command}"
        return blank.model_copy(update={"refusals": (missing,)})
    before = validated(System, {**old.config, "name": old.system}, lambda _: f"{baseline}: config")
    arms = load_collections(
        experiment, source, [candidate, before], folders=folders, progress=progress
    )
    reasons = tuple(_find_refusals(old, (before, candidate), policy, experiment.ties, arms))
    if reasons:
        return blank.model_copy(update={"refusals": reasons})
    return _decide_verdict(blank, experiment, source, old, (before, candidate), arms, progress)


def _find_refusals(
    old: Baseline,
    systems: tuple[System, System],
    policy: GatePolicy,
    ties: str,
    arms: Sequence[LoadedCollection],
) -> Iterator[str]:
    """Why the two cannot be compared; what was committed is run again only where it could be."""
    before, candidate = systems
    reasons = [*find_incompatibilities(old, ties, [describe_collection(arm) for arm in arms])]
    reasons += [reason for arm in arms for reason in unusable_lists(arm, candidate, policy)]
    yield from reasons
    if reasons:
        return
    for arm in arms:
        committed = old.find_collection(arm.name)
        if committed is not None:
            yield from find_changed_values(committed, evaluate_collection(arm, before))


def _decide_verdict(
    blank: GateVerdict,
    experiment: Experiment,
    source: Source,
    old: Baseline,
    systems: tuple[System, System],
    arms: Sequence[LoadedCollection],
    progress: Progress,
) -> GateVerdict:
    """The decision on what can be compared."""
    policy, (before, candidate) = require_policy(experiment, source), systems
    progress("evaluating", 0, 1)
    new = {arm.name: evaluate_collection(arm, candidate).value_arrays() for arm in arms}
    kept = {
        arm.collection: arm.value_arrays(other.task.runs.queries)
        for other in arms
        if (arm := old.find_collection(other.name)) is not None
    }
    progress("testing", 0, 1)
    checks = tuple(
        CheckResult(**asdict(evidence), few_changed=evidence.few_changed)
        for evidence in run_checks([*build_checks(policy, arms, kept, new)], seed=experiment.seed)
    )
    guarded = tuple(run_guards(policy, arms, kept, new))
    kept_documents = tuple(check_golden_queries(policy, source, arms, candidate))
    bounds: tuple[QueryCheck, ...] = (*guarded, *kept_documents)
    progress("looking for the queries that lost most", 0, 1)
    lost = [
        lost
        for arm in arms
        for lost in worst_queries(
            arm, before, candidate, kept[arm.name], new[arm.name], count=policy.worst
        )
    ]
    return GateVerdict.model_validate(
        {
            **dict(blank),
            "baseline_system": old.system,
            "baseline_reason": old.history[-1].reason,
            "config_changes": _config_changes(old.config, described(candidate)),
            "checks": checks,
            "guards": guarded,
            "golden": kept_documents,
            "regressions": lost,
            "exit_code": decide_exit_code(
                [check.status for check in checks if check.error is None],
                has_violations=any(not bound.holds and bound.error is None for bound in bounds),
                has_errors=any(check.error is not None for check in checks)
                or any(bound.error is not None for bound in bounds),
                on_inconclusive=policy.inconclusive,
            ),
        }
    )


def _config_changes(before: object, after: object, path: str = "") -> dict[str, tuple[Any, Any]]:
    """What differs between two configurations, by path."""
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        found: dict[str, tuple[Any, Any]] = {}
        for key in dict.fromkeys([*before, *after]):
            place = f"{path}.{key}" if path else str(key)
            found |= _config_changes(before.get(key), after.get(key), place)
        return found
    # Through JSON, so that a tuple of the one equals a list of the other.
    return {} if json.dumps(before) == json.dumps(after) else {path: (before, after)}
