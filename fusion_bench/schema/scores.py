"""What is known of a result's relevance."""

from __future__ import annotations

from math import isnan
from typing import Literal, TypeAlias

from fusion_bench.config.relevance_thresholds import CORRECT_FROM, INCORRECT_TO
from fusion_bench.errors import ConfigError
from fusion_bench.schema._base import Record, Score

Relevance: TypeAlias = Literal["correct", "incorrect", "ambiguous"]


class CRAGScore(Record):
    """What corrective RAG says of a result (REQ-TYPE-010).

    Attributes:
        relevance: Its verdict.
        confidence: How sure it is.
        needs_web_search: Whether a web search should help out.
        refined_query: A better query; None = no proposal.
    """

    relevance: Relevance
    confidence: Score
    needs_web_search: bool
    refined_query: str | None = None

    @classmethod
    def of_score(cls, score: float, *, refined_query: str | None = None) -> CRAGScore:
        """The verdict on a score, with the web search that CONV-03-05 recommends.

        Args:
            score: 0 to 1; also taken as the confidence.
            refined_query: A better query, where there is one.

        Raises:
            ValidationError: The score is outside.
        """
        relevance = judge_relevance(score)
        return cls(
            relevance=relevance,
            confidence=score,
            needs_web_search=recommends_web_search(relevance),
            refined_query=refined_query,
        )


class RelevanceScore(Record):
    """The score of a result, and what it was made from (REQ-TYPE-009).

    Attributes:
        combined: After fusion.
        keyword: Normalized BM25 score; 0 = keyword search does not run or does not return it.
        semantic: Cosine similarity; 0 likewise.
        graph: Centrality in the graph; 0 likewise.
        rerank: The reranker's score; None = not reranked.
        crag: What corrective RAG says; None = not judged.
    """

    combined: Score
    keyword: Score
    semantic: Score
    graph: Score
    rerank: Score | None = None
    crag: CRAGScore | None = None


def judge_relevance(score: float) -> Relevance:
    """``correct`` from 0.7, ``incorrect`` up to 0.3, ``ambiguous`` between them.

    Raises:
        ConfigError: The score is NaN.
    """
    if isnan(score):
        raise ConfigError(
            "score: a number is needed, given nan: a result without one has no verdict"
        )
    if score >= CORRECT_FROM:
        return "correct"
    return "incorrect" if score <= INCORRECT_TO else "ambiguous"


def recommends_web_search(relevance: Relevance) -> bool:
    """Whether a web search is recommended: for all but ``correct``."""
    return relevance != "correct"
