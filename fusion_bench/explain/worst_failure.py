"""The failure to look at first."""

from __future__ import annotations

from typing import Final, NamedTuple

from fusion_bench.explain.diagnose_failures import FailureKind
from fusion_bench.explain.diagnosis import DiagnosedCollection, FailureRecord

#: Kinds whose failures are looked at first: what was found and lost, before what was never found.
PRIORITY: Final[tuple[FailureKind, ...]] = ("burial", "dilution", "inversion", "miss")


class WorstFailure(NamedTuple):
    """A failure, and whose it is."""

    kind: FailureKind
    system: str
    failure: FailureRecord


def find_worst_failure(
    collection: DiagnosedCollection, kind: FailureKind | None = None
) -> WorstFailure | None:
    """The worst failure of the system that has most of them; the baseline's where no other fails.

    A failure that the baseline has not goes before one that it has.

    Args:
        collection: The failures on one dataset.
        kind: Their kind; None = the first of :data:`PRIORITY` that occurs.

    Returns:
        None where nothing fails.
    """
    for known in PRIORITY if kind is None else (kind,):
        failing = [item for item in collection.systems if item.count(known).worst]
        others = [item for item in failing if item.name != collection.baseline]
        if failing:
            system = max(others or failing, key=lambda item: item.count(known).failures)
            worst = system.count(known).worst
            first = next((failure for failure in worst if failure.is_caused), worst[0])
            return WorstFailure(known, system.name, first)
    return None
