"""The values of one system: its row of the table."""

from __future__ import annotations

from typing import Any, Literal

from fusion_bench.evaluation.report_records.record import OptionalFloat, ReportRecord


class TieResult(ReportRecord):
    """What the order of ties could make of one mean.

    Attributes:
        affected_queries: Queries whose value depends on it.
        minimum: Mean of the least values.
        maximum: Mean of the greatest values.
        expected: Mean of the expected values; None where it is not known.
    """

    affected_queries: int
    minimum: OptionalFloat
    maximum: OptionalFloat
    expected: OptionalFloat


class MeasureResult(ReportRecord):
    """One system on one measure.

    Attributes:
        mean: Over all judged queries.
        low: Lower end of its interval; None where nothing tells the spread.
        high: Upper end.
        values: By query, in the collection's order.
        ties: Tie sensitivity; None for rows that are not a ranking of their own.
    """

    mean: OptionalFloat
    low: OptionalFloat
    high: OptionalFloat
    values: tuple[float | None, ...]
    ties: TieResult | None = None


class SystemResult(ReportRecord):
    """One row of the table.

    Attributes:
        name: Its name.
        kind: ``system`` was asked for; ``floor`` and ``ceiling`` rows give the scale.
        note: What a floor or ceiling row is, such as which source was chosen and on what.
        config: The resolved system; None for floor and ceiling rows.
        measures: By measure name.
        judged_only: The primary measure over judged documents only, by query; empty for floor
            and ceiling rows.
        unjudged_share: Mean share of unjudged documents in the top 10.
        returned_documents: Documents ranked, over all queries.
    """

    name: str
    kind: Literal["system", "floor", "ceiling"]
    note: str = ""
    config: dict[str, Any] | None = None
    measures: dict[str, MeasureResult]
    judged_only: tuple[float | None, ...] = ()
    unjudged_share: OptionalFloat = None
    returned_documents: int = 0
