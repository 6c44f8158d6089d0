"""CRAG's verdicts on the lists of one system, or on a rerank list by itself."""

from __future__ import annotations

from typing import Literal

from fusion_bench.evaluation.report_records.record import OptionalFloat, ReportRecord
from fusion_bench.experiment.crag_settings import Verdict


class VerdictCount(ReportRecord):
    """The queries that have one verdict.

    Attributes:
        queries: How many.
        share: Of all queries.
        relevant: With a relevant document in the top of the list.
        precision: Share for which the verdict is right: with a relevant document for ``correct``,
            without one for ``incorrect``; None for ``ambiguous``, and without queries.
        low: Lower end of its 95 % interval (Clopper–Pearson; queries count singly).
        high: Upper end.
    """

    queries: int
    share: float
    relevant: int
    precision: OptionalFloat = None
    low: OptionalFloat = None
    high: OptionalFloat = None


class RefinedResult(ReportRecord):
    """The queries that were searched again, with the refined query.

    Attributes:
        queries: Their ids.
        measure: The primary measure.
        before: Its mean over them, of the lists of the original query.
        after: Its mean over them, of the lists of the refined query.
        difference: After − before.
        low: Lower end of its interval, paired by query; None where nothing tells the spread.
        high: Upper end.
        mean_before: Mean over all queries of the collection, before.
        mean_after: The same, after.
        verdicts: Of the lists of the refined query.
        relevant_before: Lists with a relevant document in the top, before.
        relevant_after: The same, after.
    """

    queries: tuple[str, ...]
    measure: str
    before: float
    after: float
    difference: float
    low: OptionalFloat
    high: OptionalFloat
    mean_before: float
    mean_after: float
    verdicts: tuple[Verdict, ...]
    relevant_before: int
    relevant_after: int


class CragResult(ReportRecord):
    """The verdicts on the lists of all queries.

    Attributes:
        name: The system, or the rerank list.
        kind: ``system`` = its final lists; ``list`` = the rerank list in its own order.
        reranker: The rerank list whose scores count.
        top: So many documents of a list count.
        grade: From which a document is relevant.
        upper: At or above it a best score is ``correct``.
        lower: At or below it a best score is ``incorrect``.
        scores: Best score by query, in the collection's order; None = nothing was scored.
        verdicts: By query, in the collection's order.
        correct: The queries of this verdict.
        ambiguous: Likewise.
        incorrect: Likewise.
        needs_web_search: Queries that are not ``correct``.
        refined: The queries that were searched again; None = the dataset has no refined lists for
            any of them.
    """

    name: str
    kind: Literal["system", "list"]
    reranker: str
    top: int
    grade: int
    upper: float
    lower: float
    scores: tuple[OptionalFloat, ...]
    verdicts: tuple[Verdict, ...]
    correct: VerdictCount
    ambiguous: VerdictCount
    incorrect: VerdictCount
    needs_web_search: int
    refined: RefinedResult | None = None

    @property
    def title(self) -> str:
        """``mine (ce)`` of a system, ``rerank list ce`` of a list."""
        return (
            f"rerank list {self.name}" if self.kind == "list" else f"{self.name} ({self.reranker})"
        )
