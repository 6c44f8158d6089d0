"""The anchor of a baseline: the values that small losses are summed up against.

Each of many changes in a row may pass and lose a little. Each update of the baseline would then
start from the lower values. The anchor keeps those of the first baseline, until someone blesses new
ones with a reason.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from fusion_bench.data.ordering import FloatArray
from fusion_bench.evaluation.prepared_dataset import EvaluationSet
from fusion_bench.experiment.gate_settings import GatePolicy
from fusion_bench.gate.baseline import Anchor, Baseline, CollectionBaseline
from fusion_bench.gate.checks import Check, build_checks, has_t_bound
from fusion_bench.gate.comparability import find_incompatibilities
from fusion_bench.gate.history import BaselineUpdate


def new_anchor(
    update: BaselineUpdate, system: str, collections: Iterable[CollectionBaseline]
) -> Anchor:
    """An anchor of these values."""
    return Anchor(
        updated_at=update.updated_at,
        reason=update.reason,
        system=system,
        values={record.collection: record.values for record in collections},
    )


def keep_anchor(previous: Baseline, collections: Iterable[CollectionBaseline]) -> Anchor:
    """The anchor of the previous baseline, in the order of the new one's queries.

    Measures and collections that it lacks begin with their new values; collections that the
    experiment no longer has are dropped.
    """
    known, values = previous.by_collection, {}
    for record in collections:
        kept: dict[str, tuple[float, ...]] = {}
        if record.collection in known:
            arrays = previous.anchor_arrays(record.collection, record.queries)
            kept = {name: tuple(array.tolist()) for name, array in arrays.items()}
        values[record.collection] = {**record.values, **kept}
    return previous.anchor.model_copy(update={"values": values})


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
    policy: GatePolicy,
    task: EvaluationSet,
    anchor: Mapping[str, FloatArray],
    after: Mapping[str, FloatArray],
) -> Iterator[Check]:
    """Every check of a policy on one collection against the anchor.

    Args:
        policy: What is checked; the tolerance is ``max_drop_since_anchor``.
        task: The collection.
        anchor: The anchor's values by measure, each (Q,); a measure that it lacks is not checked.
        after: The candidate's values.
    """
    measures = list(zip(policy.checks, task.measures, strict=False))
    known = [(key, measure) for key, measure in measures if measure.name in anchor]
    limits = {
        key: policy.checks[key].model_copy(update={"max_drop": policy.checks[key].since_anchor})
        for key, _ in known
    }
    known_policy = policy.model_copy(update={"checks": limits})
    known_task = replace(task, measures=tuple(measure for _, measure in known))
    for check in build_checks(known_policy, known_task, anchor, after):
        yield replace(check, reference="anchor")


def describe_rejected(checks: Sequence[Check]) -> list[str]:
    """The anchor checks that are neither ``unchanged`` nor a pass, in words."""
    return [
        f"{check.name}: "
        + (
            check.error
            or f"{check.difference.mean():+.4f}, max_drop_since_anchor {check.max_drop:g}"
        )
        for check in checks
        if check.error is not None or not has_t_bound(check)
    ]
