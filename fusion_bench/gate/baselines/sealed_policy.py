"""How today's policy differs from the one that a baseline was accepted under.

A looser policy would let a drop pass that the baseline's own policy stops. So it is accepted by an
update with a reason, never by editing the experiment alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, TypeVar

from fusion_bench.config.models import parse_model
from fusion_bench.experiment.gate_settings import GatePolicy, Golden, Guard, Tolerance
from fusion_bench.gate.baselines.record import Baseline
from fusion_bench.gate.records.policy_change import PolicyChange, PolicyEffect

Bound = TypeVar("Bound", Guard, Golden)
#: Key → its values, the strictest last.
ORDERED_VALUES: Final[Mapping[str, tuple[str, ...]]] = {
    "small_changes": ("pass", "block"),
    "fell": ("warn", "block"),
    "inconclusive": ("warn", "block"),
    "lists": ("compare", "refuse"),
    "unreproduced": ("accept", "block"),
    "degraded": ("accept", "refuse"),
}


def find_policy_changes(
    baseline: Baseline, policy: GatePolicy, *, experiment: str, system: str, seed: int
) -> tuple[PolicyChange, ...]:
    """What differs in the policy, and in what it guards, between a baseline and today.

    Args:
        baseline: The committed one.
        policy: Today's policy.
        experiment: The experiment's name.
        system: The gated system's name.
        seed: The experiment's seed, which the signs of the sign-flip test come from.
    """
    before = parse_model(GatePolicy, baseline.policy)
    identity = {"experiment": experiment, "system": system, "seed": seed}
    changes = [
        PolicyChange(path=key, before=getattr(baseline, key), after=value, effect="other")
        for key, value in identity.items()
        if getattr(baseline, key) != value
    ]
    return (*changes, *compare_policies(before, policy))


def compare_policies(before: GatePolicy, after: GatePolicy) -> Iterator[PolicyChange]:
    """What differs between two policies, key by key; nothing where both check the same."""
    # All checks are one family of Holm's correction: more of them lower the power of each.
    addition: PolicyEffect = "stricter" if after.inconclusive == "block" else "other"
    for name in dict.fromkeys([*before.checks, *after.checks]):
        old, new = before.checks.get(name), after.checks.get(name)
        if old is None or new is None:
            effect = addition if old is None else "looser"
            yield PolicyChange(
                path=f"checks.{name}", before=_dump(old), after=_dump(new), effect=effect
            )
        else:
            yield from _compare_tolerances(f"checks.{name}", old, new)
            slices = (before.slices_of(name)[1:], after.slices_of(name)[1:])
            yield from _compare_slices(f"checks.{name}.slices", slices, addition)
    for key, values in ORDERED_VALUES.items():
        first, second = getattr(before, key), getattr(after, key)
        if first != second:
            effect = "looser" if values.index(second) < values.index(first) else "stricter"
            yield PolicyChange(path=key, before=first, after=second, effect=effect)
    if before.candidates != after.candidates:
        yield PolicyChange(
            path="candidates.max", before=before.runs, after=after.runs, effect="other"
        )
    yield from _compare_bounds("guards", before.guards, after.guards, _is_guard_kept)
    yield from _compare_bounds("golden", before.golden, after.golden, _is_golden_kept)


def _dump(tolerance: Tolerance | None) -> dict[str, Any] | None:
    """A tolerance as YAML states it."""
    return None if tolerance is None else tolerance.model_dump(mode="json", exclude_none=True)


def _compare_tolerances(path: str, old: Tolerance, new: Tolerance) -> Iterator[PolicyChange]:
    limits = {"max_drop": (old.max_drop, new.max_drop)}
    if old.max_drop_since_anchor is not None or new.max_drop_since_anchor is not None:
        limits["max_drop_since_anchor"] = (old.since_anchor, new.since_anchor)
    for key, (first, second) in limits.items():
        if first != second:
            effect: PolicyEffect = "looser" if second > first else "stricter"
            yield PolicyChange(path=f"{path}.{key}", before=first, after=second, effect=effect)


def _compare_slices(
    path: str, slices: tuple[Sequence[str | None], Sequence[str | None]], addition: PolicyEffect
) -> Iterator[PolicyChange]:
    old, new = slices
    if set(old) != set(new):
        effect = addition if set(old) < set(new) else "looser"
        yield PolicyChange(path=path, before=list(old), after=list(new), effect=effect)


def _compare_bounds(
    path: str,
    old: Sequence[Bound],
    new: Sequence[Bound],
    is_kept: Callable[[Bound, Bound], bool],
) -> Iterator[PolicyChange]:
    """Bounds on single queries: each old one must be kept by a new one that is as strict."""
    gone = [bound for bound in old if not any(is_kept(bound, other) for other in new)]
    added = [bound for bound in new if bound not in old]
    if gone:
        sides = (_dump_all(gone), _dump_all(added))
        yield PolicyChange(path=path, before=sides[0], after=sides[1], effect="looser")
    elif added:
        yield PolicyChange(path=path, before=None, after=_dump_all(added), effect="stricter")


def _dump_all(bounds: Iterable[Bound]) -> list[dict[str, Any]] | None:
    return [bound.model_dump(mode="json", exclude_none=True) for bound in bounds] or None


def _is_guard_kept(old: Guard, new: Guard) -> bool:
    is_as_strict = new.max_loss <= old.max_loss and new.max_share <= old.max_share
    return new.measure == old.measure and is_as_strict


def _is_golden_kept(old: Golden, new: Golden) -> bool:
    is_same = (new.query, new.document) == (old.query, old.document)
    is_same_dataset = old.dataset is None or new.dataset in {None, old.dataset}
    return is_same and is_same_dataset and new.top <= old.top


def describe_unaccepted(changes: Sequence[PolicyChange], command: str) -> str | None:
    """Why a policy is refused, in one line; None where nothing needs an update.

    Args:
        changes: What differs from the baseline's policy.
        command: The command that accepts it on purpose.
    """
    refused = [change for change in changes if change.needs_update]
    if not refused:
        return None
    listed = "; ".join(
        f"{change.description}{' (looser)' if change.effect == 'looser' else ''}"
        for change in refused
    )
    return f"not what the baseline was accepted under: {listed}: undo it, or accept it: {command}"
