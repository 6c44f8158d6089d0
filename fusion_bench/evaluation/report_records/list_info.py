"""What was noticed about one input list."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from fusion_bench.evaluation.report_records.record import OptionalFloat, ReportRecord


class ListInfo(ReportRecord):
    """One input list and what was noticed about it.

    Attributes:
        name: Its name.
        trial: Which of its files this is, from 1, where the list has one for each trial; None = it
            has one file.
        kind: A source, or a rerank list.
        roles: Its roles.
        read_options: The resolved options it was read with.
        family: The model family behind it; None = none, or not declared.
        score_space: What a rerank list's numbers mean.
        when: Field of a query → values with which a run is on; empty = it is on for all.
        on_queries: Judged queries for which it is on; None = all.
        unanswered_queries: Judged queries it returned nothing for although it is on; scored by
            default.
        unjudged_queries: Queries it answered that are not judged; ignored.
        unmatched_queries: The first of these, each with the judged query that was perhaps meant.
        duplicate_rows: Rows dropped under ``on_duplicate: best_rank``.
        zero_scores: Rows scored exactly 0: padding, more often than not.
        constant_lists: Judged queries for which all documents, two or more, have one score.
        float32_queries: Judged queries that trec_eval orders otherwise, because it compares scores
            as 32-bit floats.
        lowest_score: Its lowest score.
        mean_as_read: Its mean nDCG@10 over the evaluated queries that it answers; None with few.
        mean_backwards: The same with every list read from its end.
        is_reversed: Whether the second mean is shown to be the greater one.
        rank_column_lists: Lists at the beginning of its file whose rank column was compared with
            the scores; 0 where there is none, or where it decides the order.
        opposed_rank_lists: Those of them in which the two mostly contradict each other.
        has_known_documents: Whether any document of a run is judged at all, and any of a rerank
            list in some run; where none is, the ids are most likely of two kinds.
        problems: What a look at a rerank list's scores found, a sentence each.
        degraded_queries: Queries of a rerank list that the provider it names did not score, or
            not readably where that makes the list a degraded one.
        unread_scores: Query → 1-based positions of candidates whose score could not be read in the
            provider's answer; they have 0.5.
        provider: ``provider/model`` of a rerank list, where that is known.
        ledger: What it cost and how long it took, where that is known; see ``rerank.ledger``.
    """

    name: str
    trial: int | None = None
    kind: Literal["run", "rerank"]
    roles: tuple[str, ...]
    read_options: dict[str, Any]
    family: str | None = None
    score_space: str | None = None
    when: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    on_queries: int | None = None
    unanswered_queries: int
    unjudged_queries: int
    unmatched_queries: tuple[tuple[str, str | None], ...] = ()
    duplicate_rows: int
    zero_scores: int
    constant_lists: int = 0
    float32_queries: int = 0
    lowest_score: OptionalFloat = None
    mean_as_read: OptionalFloat = None
    mean_backwards: OptionalFloat = None
    is_reversed: bool = False
    rank_column_lists: int = 0
    opposed_rank_lists: int = 0
    has_known_documents: bool = True
    problems: tuple[str, ...] = ()
    degraded_queries: int = 0
    unread_scores: dict[str, tuple[int, ...]] = Field(default_factory=dict)
    provider: str | None = None
    ledger: dict[str, Any] | None = None

    @property
    def title(self) -> str:
        """Its name, and which trial."""
        return self.name if self.trial is None else f"{self.name} (trial {self.trial})"
