"""Whether a candidate can be compared with a baseline, under the policy that it was accepted under.

Pure functions of two records. A reason names what differs, with both values.

A looser policy would let a drop pass that the baseline's own policy stops. So it is accepted by an
update with a reason, never by editing the experiment alone.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, TypeVar

from fusion_bench._version import ENGINE
from fusion_bench.experiment.settings import AUTO, GatePolicy, Golden, Guard, Tolerance
from fusion_bench.gate.baseline import (
    Baseline,
    CollectionBaseline,
    ListChange,
    PolicyChange,
    PolicyEffect,
    SealedDrop,
)
from fusion_bench.gate.verdict import check_name
from fusion_bench.io.dataset import PARENTS
from fusion_bench.io.held_out import HeldOut
from fusion_bench.util.formatting import pluralize

#: So many changed queries are named.
MAX_NAMES = 3


def find_incompatibilities(
    baseline: Baseline,
    ties: str,
    collections: Iterable[CollectionBaseline],
    held_out: Mapping[str, HeldOut],
) -> Iterator[str]:
    """Why the candidate and the baseline cannot be compared; nothing where they can.

    Lists may change: see :func:`find_list_changes`. Queries and judgments must be the same.

    Args:
        baseline: The committed one.
        ties: The candidate's tie rule.
        collections: The candidate's data, with ``digests`` and ``lists`` of all that was loaded.
        held_out: Collection → the queries that open campaigns hold out, of which nothing is said.
    """
    if baseline.engine != ENGINE:
        yield f"engine version: baseline {baseline.engine}, here {ENGINE}"
    if baseline.ties != ties:
        yield f"tie rule: baseline {baseline.ties!r}, candidate {ties!r}"
    committed = baseline.by_collection
    for new in collections:
        old = committed.pop(new.collection, None)
        if old is None:
            yield f"{new.collection}: the baseline has no such collection"
        elif sealed := held_out[new.collection].queries.intersection(old.queries):
            yield (
                f"{new.collection}: the baseline has {pluralize(len(sealed), 'query')} of a "
                f"campaign: {held_out[new.collection].reason}: or accept a baseline of the other "
                "queries (--update --anchor --reason)"
            )
        else:
            for reason in _compare_collection(old, new):
                yield f"{new.collection}: {reason}"
    for name in committed:
        yield f"{name}: in the baseline, but not in the experiment"


def _compare_collection(old: CollectionBaseline, new: CollectionBaseline) -> Iterator[str]:
    for part in sorted({*old.digests, *new.digests}):
        before, now = (each.digests.get(part, "none")[:12] for each in (old, new))
        if part.startswith(PARENTS) and "none" in (before, now):
            continue  # a system that collapses otherwise is a change of configuration
        if "/" not in part and before != now:  # those with one are lists, which may change
            yield (
                f"contents of {part} changed: baseline {before}, candidate {now} (digests alone "
                "are stored, so which rows changed is not known)"
            )
    for name in new.definitions:
        if name not in old.definitions:
            yield f"the baseline has no values of {name} (it has {', '.join(old.definitions)})"
    for path, sides in find_changes(_shared_settings(old, new), _shared_settings(new, old)).items():
        yield f"{path} changed: baseline {sides[0]!r}, candidate {sides[1]!r}"
    missing, added = (
        [query for query in first.queries if query not in second]
        for first, second in ((old, set(new.queries)), (new, set(old.queries)))
    )
    if missing or added:
        yield (
            f"queries changed: {len(missing):,} missing{_first_queries(missing)}, "
            f"{len(added):,} new{_first_queries(added)}"
        )


def _first_queries(queries: Sequence[str]) -> str:
    """`` ('q1', 'q2', 'q3' and 56 more)``; empty for none."""
    more = f" and {len(queries) - MAX_NAMES:,} more" if len(queries) > MAX_NAMES else ""
    return f" ({', '.join(map(repr, queries[:MAX_NAMES]))}{more})" if queries else ""


def _shared_settings(record: CollectionBaseline, other: CollectionBaseline) -> dict[str, Any]:
    """What must be the same in two records, with the definitions of the measures of both."""
    compared = {"judgments", "binary_relevance", "split", "query_type"}
    settings = {**record.model_dump(include=compared), "where": record.where}
    definitions = record.definitions
    shared = {name: definitions[name] for name in definitions if name in other.definitions}
    return {**settings, "definitions": shared}


def find_list_changes(
    baseline: Baseline, collections: Iterable[CollectionBaseline]
) -> Iterator[ListChange]:
    """What changed in the lists that the baseline read, in collections that both have.

    Lists that only the candidate reads are new: that is a change of configuration.
    """
    for new in collections:
        old = baseline.by_collection[new.collection]
        for part in old.lists:
            changes: dict[str, tuple[Any, Any]] = {}
            if part not in new.digests:
                changes["missing"] = (old.digests[part], None)
            else:
                if old.digests[part] != new.digests[part]:
                    changes["contents"] = (old.digests[part], new.digests[part])
                before, after = (each.lists[part].model_dump(mode="json") for each in (old, new))
                changes |= find_changes(before, after)
            for change, (before, after) in changes.items():
                yield ListChange(
                    collection=new.collection, part=part, change=change, before=before, after=after
                )


def find_changes(before: object, after: object, path: str = "") -> dict[str, tuple[Any, Any]]:
    """What differs between two nested mappings: path → (before, after)."""
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        changes: dict[str, tuple[Any, Any]] = {}
        for key in dict.fromkeys([*before, *after]):
            subpath = f"{path}.{key}" if path else str(key)
            changes |= find_changes(before.get(key), after.get(key), subpath)
        return changes
    # Through JSON: there a tuple equals a list.
    return {} if json.dumps(before) == json.dumps(after) else {path: (before, after)}


Bound = TypeVar("Bound", Guard, Golden)
#: Key → its values, the strictest last.
ORDERED_VALUES: Final[Mapping[str, tuple[str, ...]]] = {
    "inconclusive": ("warn", "block"),
    "lists": ("compare", "refuse"),
    "unreproduced": ("accept", "block"),
    "degraded": ("accept", "refuse"),
}


def compare_policies(before: GatePolicy, after: GatePolicy) -> Iterator[PolicyChange]:
    """What differs between two policies, key by key; nothing where both check the same."""
    # All checks are one family: more of them lower the power of each.
    addition: PolicyEffect = "stricter" if after.inconclusive == "block" else "other"
    tolerances = before.tolerances, after.tolerances
    for name in dict.fromkeys([*tolerances[0], *tolerances[1]]):
        old, new = (each.get(name) for each in tolerances)
        if old is None or new is None:
            effect = _find_addition(new, addition) if old is None else "looser"
            yield _make_change(f"checks.{name}", _dump(old), _dump(new), effect)
        else:
            yield from _compare_tolerances(f"checks.{name}", old, new)
            first, second = (list(each.slices_of(name)[1:]) for each in (before, after))
            if set(first) != set(second):
                is_more = set(first) < set(second)
                effect = _find_addition(new, addition) if is_more else "looser"
                yield _make_change(f"checks.{name}.slices", first, second, effect)
    known, share = (
        each.false_answers.max if each.false_answers else None for each in (before, after)
    )
    if known != share:
        is_looser = share is None or (known is not None and share > known)
        effect = "looser" if is_looser else "stricter"
        yield _make_change("checks.false answers.max", known, share, effect)
    for key, values in ORDERED_VALUES.items():
        first, second = getattr(before, key), getattr(after, key)
        if first != second:
            effect = "looser" if values.index(second) < values.index(first) else "stricter"
            yield _make_change(key, first, second, effect)
    if before.candidates != after.candidates:
        yield _make_change("candidates.max", before.runs, after.runs, "other")
    yield from _compare_bounds("guards", before.guards, after.guards, _is_guard_kept)
    yield from _compare_bounds("golden", before.golden, after.golden, _is_golden_kept)


def _make_change(path: str, before: object, after: object, effect: PolicyEffect) -> PolicyChange:
    """The record of one change."""
    return PolicyChange(path=path, before=before, after=after, effect=effect)


def _dump(tolerance: Tolerance | None) -> dict[str, Any] | None:
    """A tolerance as YAML states it."""
    return None if tolerance is None else tolerance.model_dump(mode="json", exclude_none=True)


def _find_addition(tolerance: Tolerance | None, effect: PolicyEffect) -> PolicyEffect:
    """What one more check does; with ``max_drop: auto`` only an update can compute its drop."""
    return "other" if tolerance is not None and tolerance.max_drop == AUTO else effect


def _compare_tolerances(path: str, old: Tolerance, new: Tolerance) -> Iterator[PolicyChange]:
    limits: dict[str, tuple[Any, Any]] = {"max_drop": (old.max_drop, new.max_drop)}
    stated = [each.max_drop_since_anchor for each in (old, new)]
    if stated != [None, None]:
        # By default twice max_drop: as a text, twice auto.
        first, second = (
            (AUTO if each.max_drop == AUTO else 2 * each.max_drop) if limit is None else limit
            for each, limit in zip((old, new), stated, strict=True)
        )
        limits["max_drop_since_anchor"] = (first, second)
    for key, (first, second) in limits.items():
        if first != second:
            effect: PolicyEffect = "other"
            if AUTO not in {first, second}:
                effect = "looser" if second > first else "stricter"
            yield _make_change(f"{path}.{key}", first, second, effect)


def compare_drops(
    before: Iterable[SealedDrop], after: Iterable[SealedDrop]
) -> Iterator[PolicyChange]:
    """What ``max_drop: auto`` stands for now, where it stood for another drop before."""
    known = {(each.collection, each.slice, each.measure): each.max_drop for each in before}
    for each in after:
        old = known.get((each.collection, each.slice, each.measure))
        if old is not None and old != each.max_drop:
            name = check_name(each.collection, each.slice, each.measure)
            effect: PolicyEffect = "looser" if each.max_drop > old else "stricter"
            yield _make_change(f"max_drop: auto of {name}", old, each.max_drop, effect)


def _compare_bounds(
    path: str, old: Sequence[Bound], new: Sequence[Bound], is_kept: Callable[[Bound, Bound], bool]
) -> Iterator[PolicyChange]:
    """Bounds on single queries: each old one must be kept by a new one that is as strict."""
    gone = [bound for bound in old if not any(is_kept(bound, other) for other in new)]
    added = [bound for bound in new if bound not in old]
    if gone:
        yield _make_change(path, _dump_all(gone), _dump_all(added), "looser")
    elif added:
        yield _make_change(path, None, _dump_all(added), "stricter")


def _dump_all(bounds: Iterable[Bound]) -> list[dict[str, Any]] | None:
    return [bound.model_dump(mode="json", exclude_none=True) for bound in bounds] or None


def _is_guard_kept(old: Guard, new: Guard) -> bool:
    is_as_strict = new.max_loss <= old.max_loss and new.max_share <= old.max_share
    return new.measure == old.measure and is_as_strict


def _is_golden_kept(old: Golden, new: Golden) -> bool:
    is_same = (new.query, new.document) == (old.query, old.document)
    is_same_dataset = old.dataset is None or new.dataset in {None, old.dataset}
    return is_same and is_same_dataset and new.top <= old.top
