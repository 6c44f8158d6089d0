"""Compare a candidate with the stored values of a baseline, and check the policy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

from fusion_bench.data.ordering import FloatArray
from fusion_bench.evaluation.dataset_checks.near_duplicates import find_near_duplicates
from fusion_bench.evaluation.prepared_dataset import EvaluationSet
from fusion_bench.evaluation.report_records.near_duplicates import NearDuplicates
from fusion_bench.experiment.gate_settings import GatePolicy
from fusion_bench.experiment.system import System
from fusion_bench.gate.anchor import anchor_checks, describe_rejected, pair_trials, pair_unjudged
from fusion_bench.gate.baselines.comparability import find_changes
from fusion_bench.gate.baselines.record import Baseline, CollectionBaseline
from fusion_bench.gate.checks import Check, build_checks, run_checks
from fusion_bench.gate.inputs import GateInputs, describe_collection
from fusion_bench.gate.query_checks import check_golden_queries, check_guard
from fusion_bench.gate.records.changes import ListChange
from fusion_bench.gate.regressions import find_worst_queries
from fusion_bench.gate.result import GateVerdict, decide_exit_code
from fusion_bench.gate.trials.check_trials import PairedTrials
from fusion_bench.gate.unjudged_values import PairedUnjudged


@dataclass(frozen=True, eq=False)
class PairedValues:
    """The values of a baseline and of a candidate for the same queries of one collection.

    Attributes:
        task: The collection.
        before: By measure, shape (Q,): the stored values of the baseline.
        after: By measure, shape (Q,): the values of the candidate.
        record: The candidate's record, with these values.
        unjudged: What unjudged documents could change; None with complete judgments.
        reference: The baseline's system; None where its lists are no longer the same, so that its
            ranks are unknown.
        trials: The values of each trial, of which the others are the means; None = one a side.
    """

    task: EvaluationSet
    before: dict[str, FloatArray]
    after: dict[str, FloatArray]
    record: CollectionBaseline
    unjudged: PairedUnjudged | None
    reference: System | None
    trials: PairedTrials | None = None


def pair_values(
    inputs: GateInputs,
    committed: Baseline,
    collections: Sequence[EvaluationSet],
    *,
    reference: System | None = None,
    list_changes: Sequence[ListChange] = (),
) -> list[PairedValues]:
    """Evaluate the candidate, and pair its values with the committed ones.

    Args:
        inputs: The experiment, and where its data is.
        committed: The baseline; it has the collections, the queries and the measures.
        collections: The loaded datasets.
        reference: The baseline's system; None = old ranks are not asked for.
        list_changes: What changed in the lists of the baseline.
    """
    inputs.progress("evaluating", 0, 1)
    changed = {change.collection for change in list_changes}
    pairs = []
    for task in collections:
        name = task.dataset.name
        new, old = describe_collection(task, inputs.candidate), committed.by_collection[name]
        system = None if name in changed else reference
        before, unjudged = old.value_arrays(new.queries), pair_unjudged(task, old, new)
        trials = pair_trials(old, new)
        pairs.append(PairedValues(task, before, new.value_arrays(), new, unjudged, system, trials))
    return pairs


def check_policy(
    inputs: GateInputs,
    committed: Baseline,
    pairs: Sequence[PairedValues],
    list_changes: Sequence[ListChange],
    verdict: GateVerdict,
) -> GateVerdict:
    """The verdict, completed with every check of the policy and the largest losses."""
    policy, candidate = inputs.policy, inputs.candidate
    inputs.progress("testing", 0, 1)
    values = [(pair.task, pair.before, pair.after) for pair in pairs]
    family, since_anchor = _build_family(policy, committed, pairs)
    # An anchor of the baseline's own values asks nothing that the other checks do not.
    tested = family if committed.is_anchor else [*family, *since_anchor]
    open_groups = {each.dataset for each in verdict.near_duplicates if each.withholds}
    checks = tuple(
        check.without_pass() if check.collection in open_groups else check
        for check in run_checks(tested, runs=policy.runs, seed=inputs.experiment.seed)
    )
    guards = tuple(check_guard(guard, policy, *v) for guard in policy.guards for v in values)
    golden = tuple(check_golden_queries(inputs, [pair.task for pair in pairs]))
    inputs.progress("finding the largest losses", 0, 1)
    losses = (
        find_worst_queries(
            pair.task,
            pair.before,
            pair.after,
            (pair.reference, candidate),
            count=policy.worst,
            trials=pair.trials,
        )
        for pair in pairs
    )
    results = {
        "anchor_reason": "" if committed.is_anchor else committed.anchor.reason,
        "needs_anchor": bool(describe_rejected(since_anchor)),
        "config_changes": find_changes(committed.config, candidate.resolved_config),
        "list_changes": tuple(list_changes),
        "checks": checks,
        "guards": guards,
        "golden": golden,
        "regressions": tuple(chain.from_iterable(losses)),
        "exit_code": decide_exit_code(
            checks, (*guards, *golden), verdict.blocking, is_reproduced=verdict.is_reproduced
        ),
    }
    return verdict.model_copy(update=results)


def search_queries(collections: Sequence[EvaluationSet]) -> tuple[NearDuplicates, ...]:
    """Near-duplicate queries of each collection that has some."""
    records = (find_near_duplicates(task.dataset, task.runs.queries) for task in collections)
    return tuple(record for record in records if record is not None)


def _build_family(
    policy: GatePolicy, committed: Baseline, pairs: Sequence[PairedValues]
) -> tuple[list[Check], list[Check]]:
    """The checks against the baseline, and those against its anchor."""
    family = [
        check
        for pair in pairs
        for check in build_checks(
            policy, pair.task, pair.before, pair.after, pair.unjudged, pair.trials
        )
    ]
    anchor = committed.anchor.by_collection
    since_anchor = [
        check
        for pair in pairs
        for check in anchor_checks(policy, pair.task, anchor[pair.task.dataset.name], pair.record)
    ]
    return family, since_anchor
