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
from fusion_bench.gate.check_statistics import weigh
from fusion_bench.gate.checks import contests, golden, guards
from fusion_bench.gate.comparability import differences, irreproducible
from fusion_bench.gate.loaded_collections import (
    Arms,
    Progress,
    candidate_of,
    facts,
    load_arms,
    no_progress,
    policy_of,
    record,
    unsound,
)
from fusion_bench.gate.regressions import worst_queries
from fusion_bench.gate.result import Bound, CheckResult, GateResult
from fusion_bench.gate.verdict import REFUSED, exit_code

__all__ = ["judge"]


def judge(
    experiment: Experiment,
    source: Source,
    *,
    baseline: Path,
    folders: Collection[Path],
    progress: Progress = no_progress,
) -> GateResult:
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
    policy = policy_of(experiment, source)
    candidate = candidate_of(experiment, source)
    blank = GateResult(
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
        return blank.model_copy(update={"refused": (missing,)})
    before = validated(System, {**old.config, "name": old.system}, lambda _: f"{baseline}: config")
    arms = load_arms(experiment, source, [candidate, before], folders=folders, progress=progress)
    reasons = tuple(_refusals(old, (before, candidate), policy, experiment.ties, arms))
    if reasons:
        return blank.model_copy(update={"refused": reasons})
    return _decided(blank, experiment, source, old, (before, candidate), arms, progress)


def _refusals(
    old: Baseline,
    systems: tuple[System, System],
    policy: GatePolicy,
    ties: str,
    arms: Sequence[Arms],
) -> Iterator[str]:
    """Why the two cannot be compared; what was committed is run again only where it could be."""
    before, candidate = systems
    reasons = [*differences(old, ties, [facts(arm) for arm in arms])]
    reasons += [reason for arm in arms for reason in unsound(arm, candidate, policy)]
    yield from reasons
    if reasons:
        return
    for arm in arms:
        committed = old.arm(arm.name)
        if committed is not None:
            yield from irreproducible(committed, record(arm, before))


def _decided(
    blank: GateResult,
    experiment: Experiment,
    source: Source,
    old: Baseline,
    systems: tuple[System, System],
    arms: Sequence[Arms],
    progress: Progress,
) -> GateResult:
    """The decision on what can be compared."""
    policy, (before, candidate) = policy_of(experiment, source), systems
    progress("evaluating", 0, 1)
    new = {arm.name: record(arm, candidate).arrays() for arm in arms}
    kept = {
        arm.collection: arm.arrays(other.task.runs.queries)
        for other in arms
        if (arm := old.arm(other.name)) is not None
    }
    progress("testing", 0, 1)
    checks = tuple(
        CheckResult(**asdict(evidence), few=evidence.few)
        for evidence in weigh([*contests(policy, arms, kept, new)], seed=experiment.seed)
    )
    guarded = tuple(guards(policy, arms, kept, new))
    kept_documents = tuple(golden(policy, source, arms, candidate))
    bounds: tuple[Bound, ...] = (*guarded, *kept_documents)
    progress("looking for the queries that lost most", 0, 1)
    lost = [
        lost
        for arm in arms
        for lost in worst_queries(
            arm, before, candidate, kept[arm.name], new[arm.name], count=policy.worst
        )
    ]
    return GateResult.model_validate(
        {
            **dict(blank),
            "against": old.system,
            "reason": old.history[-1].reason,
            "changes": _changes(old.config, described(candidate)),
            "checks": checks,
            "guards": guarded,
            "golden": kept_documents,
            "worst": lost,
            "exit_code": exit_code(
                [check.verdict for check in checks if check.fault is None],
                broken=any(not bound.holds and bound.fault is None for bound in bounds),
                faults=any(check.fault is not None for check in checks)
                or any(bound.fault is not None for bound in bounds),
                on_inconclusive=policy.inconclusive,
            ),
        }
    )


def _changes(before: object, after: object, path: str = "") -> dict[str, tuple[Any, Any]]:
    """What differs between two configurations, by path."""
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        found: dict[str, tuple[Any, Any]] = {}
        for key in dict.fromkeys([*before, *after]):
            place = f"{path}.{key}" if path else str(key)
            found |= _changes(before.get(key), after.get(key), place)
        return found
    # Through JSON, so that a tuple of the one equals a list of the other.
    return {} if json.dumps(before) == json.dumps(after) else {path: (before, after)}
