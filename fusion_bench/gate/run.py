"""The gate from end to end: load, refuse what cannot be compared, check, decide."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fusion_bench.config.models import Source, parse_model
from fusion_bench.evaluation.scores import resolved_config
from fusion_bench.experiment.experiment import Experiment
from fusion_bench.experiment.gate_settings import GatePolicy
from fusion_bench.experiment.system import System
from fusion_bench.gate.baseline import Baseline, read_baseline, update_command
from fusion_bench.gate.check_statistics import run_checks
from fusion_bench.gate.checks import (
    ValuesByCollection,
    build_checks,
    check_golden_queries,
    run_guards,
)
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
from fusion_bench.gate.result import CheckResult, GateVerdict, QueryCheck, QueryRegression
from fusion_bench.gate.verdict import REFUSED, decide_exit_code


def run_gate(
    experiment: Experiment,
    source: Source,
    *,
    baseline: Path,
    folders: Collection[Path],
    progress: Progress = ignore_progress,
) -> GateVerdict:
    """Check an experiment's candidate for regressions against its baseline.

    Args:
        experiment: With a ``gate``.
        source: Where it was read from.
        baseline: File of the baseline.
        folders: Where named datasets live.
        progress: Called with the stage, the steps done and all steps.

    Returns:
        The verdict; where the two cannot be compared, ``refusals`` says why.

    Raises:
        FusionBenchError: The experiment, its data or the baseline's file breaks a rule.
    """
    policy = require_policy(experiment, source)
    candidate = select_candidate(experiment, source)
    refused = GateVerdict(
        experiment=source.path.stem,
        baseline=str(baseline),
        system=candidate.name,
        on_inconclusive=policy.inconclusive,
        exit_code=REFUSED,
    )
    committed = read_baseline(baseline, source.path)
    if committed is None:
        command = update_command(source.path, baseline)
        missing = f"no baseline at {baseline}: write and commit one: {command}"
        return refused.model_copy(update={"refusals": (missing,)})
    config = {**committed.config, "name": committed.system}
    reference = parse_model(System, config, lambda _: f"{baseline}: config")
    collections = load_collections(
        experiment, source, [candidate, reference], folders=folders, progress=progress
    )
    run = _GateRun(experiment, source, policy, committed, reference, candidate, collections)
    reasons = tuple(run.find_refusals())
    if reasons:
        return refused.model_copy(update={"refusals": reasons})
    return run.decide_verdict(refused, progress)


@dataclass(frozen=True, eq=False)
class _GateRun:
    """One run of the gate: the committed baseline, its system, the candidate and the data."""

    experiment: Experiment
    source: Source
    policy: GatePolicy
    committed: Baseline
    reference: System
    candidate: System
    collections: Sequence[LoadedCollection]

    def find_refusals(self) -> Iterator[str]:
        """Why the two cannot be compared; values are reproduced only where all else agrees."""
        descriptions = [describe_collection(loaded) for loaded in self.collections]
        reasons = [
            *find_incompatibilities(self.committed, self.experiment.ties, descriptions),
            *(
                reason
                for loaded in self.collections
                for reason in unusable_lists(loaded, self.candidate, self.policy)
            ),
        ]
        yield from reasons
        if reasons:
            return
        for loaded in self.collections:
            before = self.committed.find_collection(loaded.name)
            if before is not None:
                yield from find_changed_values(before, evaluate_collection(loaded, self.reference))

    def decide_verdict(self, blank: GateVerdict, progress: Progress) -> GateVerdict:
        """Run every check and decide."""
        policy = self.policy
        progress("evaluating", 0, 1)
        before, after = self._values_before(), self._values_after()
        progress("testing", 0, 1)
        checks = run_checks(
            [*build_checks(policy, self.collections, before, after)], seed=self.experiment.seed
        )
        guards = tuple(run_guards(policy, self.collections, before, after))
        golden = tuple(check_golden_queries(policy, self.source, self.collections, self.candidate))
        progress("finding the largest losses", 0, 1)
        return blank.model_copy(
            update={
                "baseline_system": self.committed.system,
                "baseline_reason": self.committed.history[-1].reason,
                "config_changes": _config_changes(
                    self.committed.config, resolved_config(self.candidate)
                ),
                "checks": checks,
                "guards": guards,
                "golden": golden,
                "regressions": tuple(self._find_regressions(before, after)),
                "exit_code": _exit_code(checks, (*guards, *golden), policy),
            }
        )

    def _values_before(self) -> ValuesByCollection:
        """The baseline's values, in the order of the queries as they are loaded."""
        values: ValuesByCollection = {}
        for loaded in self.collections:
            before = self.committed.find_collection(loaded.name)
            if before is not None:
                values[loaded.name] = before.value_arrays(loaded.task.runs.queries)
        return values

    def _values_after(self) -> ValuesByCollection:
        return {
            loaded.name: evaluate_collection(loaded, self.candidate).value_arrays()
            for loaded in self.collections
        }

    def _find_regressions(
        self, before: ValuesByCollection, after: ValuesByCollection
    ) -> Iterator[QueryRegression]:
        for loaded in self.collections:
            yield from worst_queries(
                loaded,
                self.reference,
                self.candidate,
                before[loaded.name],
                after[loaded.name],
                count=self.policy.worst,
            )


def _exit_code(
    checks: Sequence[CheckResult], query_checks: Sequence[QueryCheck], policy: GatePolicy
) -> int:
    results = (*checks, *query_checks)
    return decide_exit_code(
        [check.status for check in checks if check.error is None],
        has_violations=any(not check.holds and check.error is None for check in query_checks),
        has_errors=any(result.error is not None for result in results),
        on_inconclusive=policy.inconclusive,
    )


def _config_changes(before: object, after: object, path: str = "") -> dict[str, tuple[Any, Any]]:
    """What differs between two configurations: path → (before, after)."""
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        changes: dict[str, tuple[Any, Any]] = {}
        for key in dict.fromkeys([*before, *after]):
            subpath = f"{path}.{key}" if path else str(key)
            changes |= _config_changes(before.get(key), after.get(key), subpath)
        return changes
    # Through JSON: there a tuple equals a list.
    return {} if json.dumps(before) == json.dumps(after) else {path: (before, after)}
