"""What the whole command answered where the right answer is known."""

from __future__ import annotations

from fusion_bench.config.json_records import StoredRecord

#: A printed number may differ from the right one by this much.
TOLERANCE = 1e-9


class CaseOutcome(StoredRecord):
    """One case.

    Attributes:
        name: What was tried.
        statuses: Of every check, in the order of the checks.
        exit_code: Of the command.
        faults: What was wrong; empty = all as it must be.
    """

    name: str
    statuses: tuple[str, ...]
    exit_code: int
    faults: tuple[str, ...]
