"""The look that a tuning run takes at its held-out queries."""

from __future__ import annotations

from fusion_bench.evaluation.report_records.record import ReportRecord


class Look(ReportRecord):
    """Which look at these held-out queries this is, and what the next one costs.

    Attributes:
        number: j, counted from 1 among the looks that share held-out queries; None = not counted.
        level: The one-sided level of this look.
        power: Its power for a difference that a single look finds with power .8 (normal
            approximation).
        next_number: Number of the next look at other numbers or queries; None = not counted, or
            the plan is over.
        next_level: Its one-sided level; under a plan, at ``max_queries`` held-out queries.
        next_query_factor: How many times the queries of a single look it needs for power .8.
        is_repeated: Whether the same numbers were looked at on the same queries before.
        file: The ledger; None = not counted.
        note: Why the looks are not counted, or are counted elsewhere; empty = neither.
        line: Line of the ledger that this look is; None = not counted, or of an earlier version.
        digest: Its digest, which the next line of the ledger names.
        lost: A look of the report before this one that the ledger lacks; empty = none is known.
        max_queries: Held-out queries of the plan's last look; None = no plan.
    """

    number: int | None
    level: float
    power: float
    next_number: int | None = None
    next_level: float | None = None
    next_query_factor: float | None = None
    is_repeated: bool = False
    file: str | None = None
    note: str = ""
    line: int | None = None
    digest: str | None = None
    lost: str = ""
    max_queries: int | None = None
