"""Whether fusing pays on one collection."""

from __future__ import annotations

from typing import Literal

from fusion_bench.evaluation.report_records.record import OptionalFloat, ReportRecord
from fusion_bench.evaluation.report_records.results.unjudged import UnjudgedResult


class FusionResult(ReportRecord):
    """Every fusion against every single source on the primary measure, as one family.

    Attributes:
        verdict: ``pays``: some fusion's interval against every source lies above 0. ``loses``:
            some source's interval against every fusion does. Else ``not shown``. Where unjudged
            documents contradict either, ``unjudged decide``.
        fusion: The fusion that pays; else the one with the highest mean.
        source: The source that no fusion reaches; else the one with the highest mean.
        fusion_mean: Of that fusion.
        source_mean: Of that source.
        difference: Fusion − source.
        low: Lower end of its interval, which holds together with those of the family.
        high: Upper end.
        p_adjusted: Over the family.
        fusions: How many fusions were compared.
        sources: … with how many sources.
        contradicted: Under ``unjudged decide`` the pair, fusion and source, whose difference is
            contradicted; empty otherwise.
        unjudged: What unjudged documents could change in that pair; None otherwise.
        is_reranked: All fusions blend in a reranker; where some do not, only those are compared.
    """

    verdict: Literal["pays", "loses", "not shown", "unjudged decide"]
    fusion: str
    source: str
    fusion_mean: OptionalFloat
    source_mean: OptionalFloat
    difference: OptionalFloat
    low: OptionalFloat
    high: OptionalFloat
    p_adjusted: OptionalFloat
    fusions: int
    sources: int
    is_reranked: bool
    contradicted: tuple[str, ...] = ()
    unjudged: UnjudgedResult | None = None
