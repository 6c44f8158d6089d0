"""The anchor of a baseline: the values that small losses are summed up against.

Each of many changes in a row may pass and lose a little. Each update of the baseline would then
start from the lower values. The anchor keeps those of the first baseline, until someone blesses new
ones with a reason.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

from fusion_bench.evaluation.prepared_dataset import EvaluationSet
from fusion_bench.experiment.gate_settings import GatePolicy
from fusion_bench.gate.baselines.comparability import find_incompatibilities
from fusion_bench.gate.baselines.record import Anchor, Baseline, CollectionBaseline
from fusion_bench.gate.checks import Check, build_checks, is_accepted
from fusion_bench.gate.records.history import BaselineUpdate
from fusion_bench.gate.trials.check_trials import PairedTrials
from fusion_bench.gate.unjudged_values import PairedUnjudged

#: The values of one measure by query.
Column: TypeAlias = tuple[float | None, ...]


def new_anchor(
    update: BaselineUpdate, system: str, collections: Iterable[CollectionBaseline]
) -> Anchor:
    """An anchor of these values."""
    return Anchor(
        updated_at=update.updated_at,
        reason=update.reason,
        system=system,
        collections=tuple(collections),
    )


def keep_anchor(previous: Baseline, collections: Iterable[CollectionBaseline]) -> Anchor:
    """The anchor of the previous baseline, for a new one.

    Measures and collections that it lacks begin with their new values; collections that the
    experiment no longer has are dropped.
    """
    known = previous.anchor.by_collection
    kept = (
        _add_measures(known[record.collection], record) if record.collection in known else record
        for record in collections
    )
    return previous.anchor.model_copy(update={"collections": tuple(kept)})


def _add_measures(anchor: CollectionBaseline, new: CollectionBaseline) -> CollectionBaseline:
    """The anchor's record with the measures that only the new one has, in its own order."""
    rows = new.find_rows(anchor.queries).tolist()

    def add(old: Mapping[str, Column], others: Mapping[str, Column]) -> dict[str, Column]:
        return {name: tuple(row[i] for i in rows) for name, row in others.items()} | dict(old)

    unjudged = anchor.unjudged
    if unjudged is not None and new.unjudged is not None:
        columns = {
            "judged_only": add(unjudged.judged_only, new.unjudged.judged_only),
            "filled": add(unjudged.filled, new.unjudged.filled),
        }
        unjudged = unjudged.model_copy(update=columns)
    trials = {
        name: tuple(tuple(row[i] for i in rows) for row in each)
        for name, each in new.trials.items()
        if name not in anchor.values
    }
    changed = {
        "values": add(anchor.values, new.values),
        "trials": trials | dict(anchor.trials),
        "definitions": {**new.definitions, **anchor.definitions},
        "unjudged": unjudged,
    }
    return anchor.model_copy(update=changed)


def find_anchor_breaks(
    previous: Baseline, ties: str, collections: Iterable[CollectionBaseline]
) -> Iterator[str]:
    """Why new values cannot be compared with the anchor: other queries, judgments, definitions.

    New collections and new measures have no values to compare with; they are no reason.
    """
    known, common = previous.by_collection, []
    for record in collections:
        old = known.get(record.collection)
        if old is not None:
            names = record.definitions.keys() & old.definitions.keys()
            definitions = {name: record.definitions[name] for name in names}
            common.append(record.model_copy(update={"definitions": definitions}))
    kept = previous.model_copy(
        update={"collections": tuple(known[record.collection] for record in common)}
    )
    return find_incompatibilities(kept, ties, common)


def anchor_checks(
    policy: GatePolicy, task: EvaluationSet, anchor: CollectionBaseline, new: CollectionBaseline
) -> Iterator[Check]:
    """Every check of a policy on one collection against the anchor.

    Args:
        policy: What is checked; the tolerance is ``max_drop_since_anchor``.
        task: The collection.
        anchor: The anchor's values; a measure that it lacks is not checked.
        new: The candidate's values.
    """
    measures = list(zip(policy.checks, task.measures, strict=False))
    known = [(key, measure) for key, measure in measures if measure.name in anchor.values]
    limits = {
        key: policy.checks[key].model_copy(update={"max_drop": policy.checks[key].since_anchor})
        for key, _ in known
    }
    known_policy = policy.model_copy(update={"checks": limits})
    known_task = replace(task, measures=tuple(measure for _, measure in known))
    before, after = anchor.value_arrays(new.queries), new.value_arrays()
    unjudged, trials = pair_unjudged(task, anchor, new), pair_trials(anchor, new)
    for check in build_checks(known_policy, known_task, before, after, unjudged, trials):
        yield replace(check, reference="anchor")


def pair_unjudged(
    task: EvaluationSet, old: CollectionBaseline, new: CollectionBaseline
) -> PairedUnjudged | None:
    """What unjudged documents could change between two records; None with complete judgments."""
    if old.unjudged is None or new.unjudged is None:
        return None
    order = old.find_rows(new.queries)
    return PairedUnjudged(old.unjudged, new.unjudged, order, task.groups, new.judgments)


def pair_trials(old: CollectionBaseline, new: CollectionBaseline) -> PairedTrials | None:
    """The trials of two records, in the order of the new one; None where there is one a side."""
    if not (old.trials or new.trials):
        return None
    common = old.lists.keys() & new.lists.keys()
    counts = {part: (old.lists[part].trials, new.lists[part].trials) for part in common}
    return PairedTrials(
        old.trial_arrays(new.queries),
        new.trial_arrays(),
        is_shared=any(
            min(both) > 1 and old.digests[part] == new.digests[part]
            for part, both in counts.items()
        ),
        borrows=any(min(both) == 1 < max(both) for both in counts.values()),
    )


def describe_rejected(checks: Sequence[Check]) -> list[str]:
    """The anchor checks that are neither ``unchanged`` nor a pass, in words."""
    return [
        f"{check.name}: "
        + (
            check.error
            or f"{check.difference.mean():+.4f}, max_drop_since_anchor {check.max_drop:g}"
        )
        for check in checks
        if check.error is not None or not is_accepted(check)
    ]
