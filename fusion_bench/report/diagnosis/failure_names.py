"""Words that the tables of a diagnosis share."""

from __future__ import annotations

from collections.abc import Sequence

from fusion_bench.explain.diagnose_failures import FailureKind
from fusion_bench.util.formatting import pluralize

PLURALS: dict[FailureKind, str] = {
    "dilution": "dilutions",
    "burial": "burials",
    "miss": "misses",
    "inversion": "inversions",
}
#: So many systems are named; more are counted.
MAX_NAMES = 4


def pluralize_failures(count: int, kind: FailureKind) -> str:
    """A number of failures with their name: ``1 miss``, ``2 burials``."""
    return f"{count:,} {kind if count == 1 else PLURALS[kind]}"


def name_systems(names: Sequence[str]) -> str:
    """Their names, or the first and how many more."""
    if len(names) <= MAX_NAMES:
        return ", ".join(names)
    return f"{names[0]} and {pluralize(len(names) - 1, 'other')}"
