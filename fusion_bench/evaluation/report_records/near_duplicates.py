"""Queries that depend on each other though no group says so."""

from __future__ import annotations

from fusion_bench.data.query_groups.find_groups import LinkReason
from fusion_bench.evaluation.report_records.record import ReportRecord


class NearDuplicates(ReportRecord):
    """What a search for near-duplicate queries finds.

    Attributes:
        dataset: The dataset's name; None = no ``dataset.yaml`` describes it.
        queries: Q, the queries that were searched.
        linked: So many of them are linked to one of another declared group.
        groups: The number of groups that these form; links are followed.
        largest: Queries of the largest of them.
        links: Number of links by reason.
        is_too_large: Whether the largest holds more than a fifth of the queries, so that
            ``groups: auto`` refuses it.
        withholds: Whether no ``ship`` and no plain ``pass`` is said before the dataset's groups
            are declared or refused: a tenth of the queries or more are linked, and it does neither.
    """

    dataset: str | None
    queries: int
    linked: int
    groups: int
    largest: int
    links: dict[LinkReason, int]
    is_too_large: bool
    withholds: bool = False
