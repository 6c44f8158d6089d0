"""The gate from end to end: load, refuse what cannot be compared, check, decide."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from itertools import chain
from pathlib import Path

from fusion_bench.config.models import Source, parse_model
from fusion_bench.evaluation.scores import resolved_config
from fusion_bench.experiment.experiment import Experiment
from fusion_bench.experiment.gate_settings import GatePolicy
from fusion_bench.experiment.system import System
from fusion_bench.gate.baseline import Baseline, read_baseline, update_command
from fusion_bench.gate.check_statistics import run_checks
from fusion_bench.gate.checks import build_checks, check_golden_queries, check_guard
from fusion_bench.gate.comparability import (
    find_changed_values,
    find_changes,
    find_incompatibilities,
)
from fusion_bench.gate.loaded_collections import (
    LoadedCollection,
    Progress,
    describe_collection,
    find_unusable_lists,
    ignore_progress,
    load_collections,
    select_gated_system,
)
from fusion_bench.gate.regressions import find_worst_queries
from fusion_bench.gate.result import GateVerdict, decide_exit_code


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
    policy, candidate = select_gated_system(experiment, source)
    verdict = GateVerdict(
        experiment=source.path.stem,
        baseline=str(baseline),
        system=candidate.name,
        on_inconclusive=policy.inconclusive,
    )
    committed = read_baseline(baseline, source.path)
    if committed is None:
        command = update_command(source.path, baseline)
        missing = f"no baseline at {baseline}: write and commit one: {command}"
        return verdict.model_copy(update={"refusals": (missing,)})
    config = {**committed.config, "name": committed.system}
    reference = parse_model(System, config, lambda _: f"{baseline}: config")
    collections = load_collections(
        experiment, source, [candidate, reference], folders=folders, progress=progress
    )
    systems = (reference, candidate)
    refusals = tuple(_find_refusals(experiment, policy, committed, systems, collections))
    if refusals:
        return verdict.model_copy(update={"refusals": refusals})
    changes = {
        "baseline_system": committed.system,
        "baseline_reason": committed.history[-1].reason,
        "config_changes": find_changes(committed.config, resolved_config(candidate)),
    }
    progress("evaluating", 0, 1)
    compared = []
    for c in collections:
        new = describe_collection(c, candidate)
        old = committed.by_collection[c.name]
        compared.append((c, old.value_arrays(new.queries), new.value_arrays()))
    progress("testing", 0, 1)
    family = [check for values in compared for check in build_checks(policy, *values)]
    checks = run_checks(family, seed=experiment.seed)
    guards = tuple(check_guard(guard, *values) for guard in policy.guards for values in compared)
    golden = tuple(check_golden_queries(policy, source, collections, candidate))
    progress("finding the largest losses", 0, 1)
    losses = [find_worst_queries(*values, systems, count=policy.worst) for values in compared]
    results = {
        "checks": checks,
        "guards": guards,
        "golden": golden,
        "regressions": tuple(chain.from_iterable(losses)),
        "exit_code": decide_exit_code(checks, (*guards, *golden), policy.inconclusive),
    }
    return verdict.model_copy(update=changes | results)


def _find_refusals(
    experiment: Experiment,
    policy: GatePolicy,
    committed: Baseline,
    systems: tuple[System, System],
    collections: Sequence[LoadedCollection],
) -> Iterator[str]:
    """Why the two cannot be compared; values are reproduced only where all else agrees."""
    reference, candidate = systems
    descriptions = [describe_collection(c) for c in collections]
    reasons = [
        *find_incompatibilities(committed, experiment.ties, descriptions),
        *(text for c in collections for text in find_unusable_lists(c, candidate, policy)),
    ]
    yield from reasons
    if not reasons:
        for c in collections:
            new = describe_collection(c, reference)
            yield from find_changed_values(committed.by_collection[c.name], new)
