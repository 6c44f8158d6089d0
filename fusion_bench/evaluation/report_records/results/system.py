"""The values of one system: its row of the table."""

from __future__ import annotations

from typing import Any, Literal

from fusion_bench.evaluation.report_records.record import OptionalFloat, ReportRecord
from fusion_bench.evaluation.report_records.results.trials import TrialsResult


class TieResult(ReportRecord):
    """What the order of ties in the final lists could make of one mean.

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


class SourceTieResult(TieResult):
    """What the order of equal scores inside the lists that a system reads could make of one mean.

    Attributes:
        settlements: The range is that of so many random orders, and of the given one; None = it
            is exact, over all orders.
    """

    settlements: int | None = None


class CompletionBounds(ReportRecord):
    """What the unjudged documents of a system could make of its mean.

    A completion gives each of them some grade of the scale; ideals are computed again.

    Attributes:
        depth: The k of Judged@k: the measure's cutoff, or 10.
        judged: Mean of Judged@k.
        low: Mean of the least values over completions; None = completions of the measure are not
            known.
        high: Mean of the greatest; None likewise.
    """

    depth: int
    judged: float
    low: OptionalFloat = None
    high: OptionalFloat = None


class MeasureResult(ReportRecord):
    """One system on one measure.

    Attributes:
        mean: Over all judged queries.
        low: Lower end of its interval; None where nothing tells the spread.
        high: Upper end.
        values: By query, in the collection's order; of several trials the means over these.
        ties: Ties in the final lists; None for rows that are not a ranking of their own.
        source_ties: Ties inside the lists that the system reads; None for such rows, and where
            it was not computed.
        trials: The values of each trial, as ``values``; empty = there is one.
        bounds: How much of its lists is judged, and what the rest could make of the mean; None
            with complete judgments, and for rows that are not a ranking of their own.
    """

    mean: OptionalFloat
    low: OptionalFloat
    high: OptionalFloat
    values: tuple[float | None, ...]
    ties: TieResult | None = None
    source_ties: SourceTieResult | None = None
    trials: tuple[tuple[float | None, ...], ...] = ()
    bounds: CompletionBounds | None = None


class SliceBounds(ReportRecord):
    """What unjudged documents could make of a system's mean over one slice of the queries.

    Attributes:
        field: The sliced field, such as ``type``.
        value: Its value; None = queries without one.
        bounds: Over these queries.
    """

    field: str
    value: str | None
    bounds: CompletionBounds


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
        filled: The primary measure by query, where an unjudged document has the mean gain of the
            system's judged documents at its rank; empty likewise, and where the measure has no
            formula for it; None = no list has a judged document.
        unjudged_share: Mean share of unjudged documents in the top 10.
        slice_bounds: What the bounds of the primary measure are on each slice of the queries; empty
            with complete judgments, and for floor and ceiling rows.
        returned_documents: Documents ranked, over all queries; of several trials the mean.
        trials: How far its trials lie apart; None = there is one.
    """

    name: str
    kind: Literal["system", "floor", "ceiling"]
    note: str = ""
    config: dict[str, Any] | None = None
    measures: dict[str, MeasureResult]
    judged_only: tuple[float | None, ...] = ()
    filled: tuple[float | None, ...] = ()
    unjudged_share: OptionalFloat = None
    slice_bounds: tuple[SliceBounds, ...] = ()
    returned_documents: int = 0
    trials: TrialsResult | None = None
