"""What a reader should know of the data before trusting a tuning run."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from fusion_bench.evaluation.report_records.data_warning import DataWarning
from fusion_bench.evaluation.report_records.list_info import ListInfo
from fusion_bench.evaluation.report_records.record import ReportRecord
from fusion_bench.evaluation.report_records.results.system import CompletionBounds


class DataFacts(ReportRecord):
    """The input lists, and what unjudged documents and ties do to the held-out values.

    Attributes:
        runs: The input lists.
        warnings: What speaks against them, and against how the two systems read them.
        judgments: What an unjudged document means; None = not declared.
        queries: Held-out queries.
        unjudged_shares: Share of unjudged documents in the top 10, of the default and the tuned
            system.
        tied: Queries whose value depends on ties in the final list, of both.
        source_tied: Queries whose value depends on ties inside the lists that are read, of both;
            nothing where that is not computed for the measure.
        bounds: What unjudged documents could make of the held-out mean, of both and of the system
            with parameters by class; nothing with complete judgments, and where it is not known.
    """

    runs: tuple[ListInfo, ...]
    warnings: tuple[DataWarning, ...]
    judgments: Literal["pooled", "sparse", "complete"] | None
    queries: int
    unjudged_shares: dict[str, float]
    tied: dict[str, int]
    source_tied: dict[str, int]
    bounds: dict[str, CompletionBounds] = Field(default_factory=dict)
